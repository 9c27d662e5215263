//! A GGUF file: opened in memory and by positioned reads, and written again.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    gguf::fuzz::parse(bytes);
});
