//! Runs the examples in Rust of README.md, with the default model under the names that they open.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = include_str!("../README.md");

/// The programs in Rust on the page.
fn examples() -> Vec<&'static str> {
    let blocks = PAGE.split("\n```rust").skip(1).filter_map(|block| block.split_once('\n'));
    blocks.map(|(_, code)| code.split("```").next().unwrap_or_default()).collect()
}

/// The name of the file in `examples/` with this program, after one line that says what it does.
fn stem(code: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let has = |path: &PathBuf| {
        fs::read_to_string(path).expect("text").split_once("\n\n").is_some_and(|(_, rest)| rest == code)
    };
    let file =
        files.into_iter().find(has).unwrap_or_else(|| panic!("no file in {} is the example\n{code}", folder.display()));
    file.file_stem().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn the_examples_of_the_page_run() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/cli/assets/default.gguf");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    fs::create_dir_all(&folder).expect("room");
    // `cargo test` builds examples beside the folder of the tests.
    let built = env::current_exe().expect("a path").ancestors().nth(2).expect("a folder").join("examples");
    assert!(!examples().is_empty());
    for code in examples() {
        for file in code.split('"').filter(|text| text.ends_with(".gguf")) {
            fs::copy(&model, folder.join(file)).expect("room");
        }
        let program = built.join(stem(code)).with_extension(env::consts::EXE_EXTENSION);
        let output = Command::new(&program).current_dir(&folder).output();
        let output =
            output.unwrap_or_else(|error| panic!("{}: {error}: run `cargo build --examples` first", program.display()));
        let printed = String::from_utf8_lossy(&output.stdout);
        println!("{printed}");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(printed.split_whitespace().count() > 1, "the answer is {printed:?}");
    }
}
