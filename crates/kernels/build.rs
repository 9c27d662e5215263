//! Finds the folder of the shaders and names it to the compiler as `WEFT_SHADERS`.

use std::env;
use std::path::PathBuf;

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    // In the repository `shaders` is a link, which `cargo package` replaces with the folder. A
    // checkout on Windows usually has a small file instead of the link.
    let shaders =
        Some(package.join("shaders")).filter(|path| path.is_dir()).unwrap_or_else(|| package.join("../../shaders"));
    println!("cargo::rustc-env=WEFT_SHADERS={}", shaders.display());
    println!("cargo::rerun-if-changed=build.rs");
}
