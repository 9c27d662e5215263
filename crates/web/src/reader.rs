//! Files whose bytes JavaScript gives.

use crate::cancel::Cancel;
use crate::error::Failure;
use js_sys::{Promise, Uint8Array};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    /// `Reader` of `engine.ts`.
    #[derive(Clone)]
    pub type Reader;

    #[wasm_bindgen(method, getter)]
    fn name(this: &Reader) -> String;

    #[wasm_bindgen(method, getter)]
    fn length(this: &Reader) -> f64;

    #[wasm_bindgen(method, catch)]
    fn read(this: &Reader, offset: f64, length: f64) -> Result<Promise, JsValue>;
}

/// The call that reads now: what stops it, and the error that JavaScript threw in it last.
#[derive(Clone)]
pub struct Running(Rc<RefCell<(Cancel, Option<JsValue>)>>);

impl Running {
    pub fn new(cancel: &Cancel) -> Self {
        Self(Rc::new(RefCell::new((cancel.clone(), None))))
    }

    /// Another call reads from now on.
    pub fn begin(&self, cancel: &Cancel) {
        self.0.replace((cancel.clone(), None));
    }

    /// The failure of the call: that of JavaScript's side, if there was one, or the cancelling.
    pub fn told(&self, failure: impl Into<Failure>) -> Failure {
        let mut running = self.0.borrow_mut();
        if running.0.raised() { Failure::aborted() } else { failure.into().thrown(running.1.take()) }
    }
}

/// A reader as a source that is awaited.
#[derive(Clone)]
pub struct JsSource {
    reader: Reader,
    length: u64,
    running: Running,
}

impl JsSource {
    pub fn new(reader: Reader, running: &Running) -> Self {
        let length = reader.length() as u64;
        Self { reader, length, running: running.clone() }
    }

    pub fn name(&self) -> String {
        self.reader.name()
    }

    fn failed(&self, error: JsValue) -> io::Error {
        self.running.0.borrow_mut().1 = Some(error);
        io::Error::other("the page could not read it")
    }
}

impl gguf::AsyncSource for JsSource {
    fn len_bytes(&self) -> u64 {
        self.length
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if self.running.0.borrow().0.raised() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "cancelled"));
        }
        let end = offset.checked_add(buf.len() as u64).filter(|&end| end <= self.length);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let promise = self.reader.read(offset as f64, buf.len() as f64).map_err(|error| self.failed(error))?;
        let read = JsFuture::from(promise).await.map_err(|error| self.failed(error))?;
        let bytes: Uint8Array = read.dyn_into().map_err(|_| io::ErrorKind::InvalidData)?;
        if bytes.length() as usize != buf.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.copy_to(buf);
        Ok(())
    }
}
