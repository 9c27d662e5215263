//! Run `cargo +nightly fuzz run load` in the folder of the crate. The files of `tests/goldens` are
//! good seeds.

#![no_main]

use gguf::Gguf;
use kernels::Executor;
use model::ModelFile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = Gguf::from_bytes(bytes.to_vec()) else { return };
    let Ok(file) = ModelFile::new(file) else { return };
    if file.check(&Executor::Cpu).is_ok() {
        file.on(Executor::Cpu).expect("what was checked loads");
    }
});
