//! A LoRA adapter: a GGUF file, or a configuration, a zero byte and a safetensors file.

#![no_main]

#[path = "../../crates/model/tests/common/mod.rs"]
mod common;

use common::{Tiny, open};
use gguf::Gguf;
use kernels::Executor;
use model::{AdapterFile, Checked};
use std::cell::RefCell;

thread_local! {
    static BASE: RefCell<Checked> = {
        let file = open(&Tiny::narrow().file()).expect("a good model");
        RefCell::new(file.check(&Executor::Cpu).expect("a good model"))
    };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let split = bytes.iter().position(|byte| *byte == 0).map(|at| (&bytes[..at], &bytes[at + 1..]));
    let adapter = match split {
        _ if bytes.starts_with(b"GGUF") => {
            Gguf::from_bytes(bytes.to_vec()).ok().and_then(|file| AdapterFile::from_gguf(file).ok())
        }
        Some((config, tensors)) => {
            AdapterFile::from_peft(&String::from_utf8_lossy(config), Box::new(tensors.to_vec())).ok()
        }
        None => None,
    };
    if let Some(adapter) = adapter {
        BASE.with_borrow_mut(|base| drop(base.adapt(&adapter, 0.5)));
    }
});
