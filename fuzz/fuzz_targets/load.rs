//! A model: the beginning of a GGUF file, behind which the target puts zeros for the weights.

#![no_main]

use gguf::Gguf;
use kernels::Executor;
use model::ModelFile;

/// Zeros that follow every input.
const WEIGHTS_BYTES: usize = 1 << 17;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = Gguf::from_bytes([bytes, &[0; WEIGHTS_BYTES]].concat()) else { return };
    let Ok(file) = ModelFile::new(file) else { return };
    if file.check(&Executor::Cpu).is_ok() {
        file.on(Executor::Cpu).expect("what was checked loads");
    }
});
