//! Run `cargo +nightly fuzz run adapter` in the folder of the crate. The input is a GGUF file, or a
//! configuration, a zero byte and a safetensors file.

#![no_main]

use gguf::Gguf;
use kernels::Executor;
use model::{AdapterFile, Checked, ModelFile};
use std::cell::RefCell;

const MODEL: &[u8] = include_bytes!("../../../../tests/goldens/qwen3yarn/qwen3yarn-F16.gguf");

thread_local! {
    static BASE: RefCell<Checked> = {
        let file = ModelFile::new(Gguf::from_bytes(MODEL.to_vec()).expect("a good file")).expect("a model");
        RefCell::new(file.check(&Executor::Cpu).expect("a good model"))
    };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let split = bytes.iter().position(|byte| *byte == 0).map(|at| (&bytes[..at], &bytes[at + 1..]));
    let adapter = match split {
        _ if bytes.starts_with(b"GGUF") => Gguf::from_bytes(bytes.to_vec()).ok().and_then(|file| AdapterFile::from_gguf(file).ok()),
        Some((config, tensors)) => AdapterFile::from_peft(&String::from_utf8_lossy(config), Box::new(tensors.to_vec())).ok(),
        None => None,
    };
    if let Some(adapter) = adapter {
        BASE.with_borrow_mut(|base| drop(base.adapt(&adapter, 0.5)));
    }
});
