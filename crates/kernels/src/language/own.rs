//! Operations of crates that depend on this one.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::tensor::Counts;
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};
use gguf::BoxFuture;
use std::fmt::Debug;
use std::sync::Arc;

/// An operation with an oracle and kernels.
pub trait Owned: Operation + Reference + Lowering + Debug + Send + Sync {}

impl<T: Operation + Reference + Lowering + Debug + Send + Sync> Owned for T {}

/// An operation of a crate that depends on this one. The planner runs it as it was recorded.
#[derive(Clone, Debug)]
pub struct Own {
    name: &'static str,
    op: Arc<dyn Owned>,
}

impl Own {
    /// The operation under the name of the function that records it.
    pub fn new(name: &'static str, op: impl Owned + 'static) -> Self {
        Self { name, op: Arc::new(op) }
    }

    /// The name of the function that records the operation.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl Operation for Own {
    fn io(&self) -> Io {
        self.op.io()
    }

    fn work(&self, counts: Counts) -> Work {
        self.op.work(counts)
    }
}

impl Reference for Own {
    fn reference(&self, host: &mut Host<'_>) {
        self.op.reference(host);
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        self.op.in_turns(host)
    }
}

impl Lowering for Own {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        self.op.lower(cx)
    }
}
