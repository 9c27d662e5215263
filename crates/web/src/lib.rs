//! The engine in a browser: chat and training from JavaScript, by WebAssembly.
