//! The engine in a browser: chat and training from JavaScript, by WebAssembly.
//!
//! A worker of the npm package calls these classes; `js/src/engine.ts` is their interface. Options
//! and results are JSON objects, errors are objects with a `code`.
#![cfg(target_arch = "wasm32")]

mod adapter;
mod batch;
mod cancel;
mod device;
mod error;
mod hasher;
mod info;
mod json;
mod model;
mod opened;
mod options;
mod reader;
mod session;
mod trainer;

use wasm_bindgen::prelude::wasm_bindgen;

/// Panics are printed with their place. A panic is a bug: the worker that it ends is started again.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| error::print(&panic.to_string())));
}
