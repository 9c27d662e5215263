//! Stopping a running call.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wasm_bindgen::prelude::wasm_bindgen;

/// Stops the call that it was given to. A call takes the flags that its parts look at, because a
/// session has a flag of its own.
#[wasm_bindgen]
#[derive(Clone, Default)]
pub struct Cancel(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    raised: bool,
    flags: Vec<Arc<AtomicBool>>,
}

#[wasm_bindgen]
impl Cancel {
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the running call, or the next one that it is given to.
    pub fn cancel(&self) {
        let mut state = self.0.borrow_mut();
        state.raised = true;
        state.flags.iter().for_each(|flag| flag.store(true, Ordering::Relaxed));
    }
}

impl Cancel {
    pub fn raised(&self) -> bool {
        self.0.borrow().raised
    }

    /// Sets this flag with the next [`Cancel::cancel`], until the guard is dropped.
    pub fn sets(&self, flag: &Arc<AtomicBool>) -> Guard {
        self.0.borrow_mut().flags.push(Arc::clone(flag));
        Guard(self.clone(), Arc::clone(flag))
    }
}

pub struct Guard(Cancel, Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.borrow_mut().flags.retain(|flag| !Arc::ptr_eq(flag, &self.1));
    }
}
