//! Puts the pages of `weft web` into the binary, if `cargo xtask web` has built them.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Names the folder of the pages. Without it, it is where `cargo xtask web` writes them.
const VARIABLE: &str = "WEFT_PAGES";

/// The model that is in the binary already.
const MODEL: &str = "assets/default.gguf";

fn main() {
    println!("cargo:rerun-if-env-changed={VARIABLE}");
    let folder = std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from("../../target/web/site"), PathBuf::from);
    println!("cargo:rerun-if-changed={}", folder.display());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut list = String::from("&[\n");
    if std::env::var_os("CARGO_FEATURE_WEB").is_some() && folder.is_dir() {
        let model = fs::read(MODEL).expect("the default model");
        add(&folder, &folder, &out, &model, &mut list);
    }
    list.push_str("]\n");
    fs::write(out.join("pages.rs"), list).expect("the output folder is writable");
}

/// Adds the files of a folder, with names relative to `root`.
fn add(root: &Path, folder: &Path, out: &Path, model: &[u8], list: &mut String) {
    let entries = fs::read_dir(folder).expect("the folder of the pages");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        println!("cargo:rerun-if-changed={}", path.display());
        if path.is_dir() {
            add(root, &path, out, model, list);
            continue;
        }
        let name = path.strip_prefix(root).expect("a file of the folder").to_string_lossy().replace('\\', "/");
        let bytes = fs::read(&path).expect("a file of the pages");
        if bytes == model {
            writeln!(list, "({name:?}, Page::Model),").expect("a string");
            continue;
        }
        let packed = out.join(format!("page{}.gz", list.lines().count()));
        let mut writer = GzEncoder::new(vec![], Compression::best());
        writer.write_all(&bytes).expect("memory");
        fs::write(&packed, writer.finish().expect("memory")).expect("the output folder is writable");
        writeln!(list, "({name:?}, Page::Packed(include_bytes!({packed:?}))),").expect("a string");
    }
}
