//! `cargo +nightly fuzz run parse` in the folder of the crate.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gguf::fuzz::parse(bytes);
});
