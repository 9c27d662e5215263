//! A manifest of Ollama's store.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    model::ollama::fuzz(bytes);
});
