//! Run `cargo +nightly fuzz run manifest` in the folder of the crate.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    model::ollama::fuzz(bytes);
});
