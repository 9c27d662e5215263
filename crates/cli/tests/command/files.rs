//! Files that are missing, broken or not models: one line of error, exit code 1, no result.

use crate::run;
use crate::tiny::{self, Model};

#[test]
fn a_missing_model_names_its_neighbours() {
    let model = Model::new(&tiny::builder(0.1));
    let line = run(&["run", &model.beside("tinny.gguf"), "-p", "x"]).failed(1);
    assert!(line.contains("tinny.gguf: no such file") && line.contains("has tiny.gguf"), "{line}");
    let line = run(&["run", &model.beside("no/x.gguf"), "-p", "x"]).failed(1);
    assert!(line.contains("there is no folder"), "{line}");
    let line = run(&["run", model.folder.path().to_str().unwrap(), "-p", "x"]).failed(1);
    assert!(line.contains("is a directory") && line.contains("tiny.gguf"), "{line}");
}

#[test]
fn a_file_that_is_no_model_says_why() {
    let model = Model::new(&tiny::builder(0.1));
    let bytes = std::fs::read(model.path()).unwrap();
    let cases: [(&str, &[u8], &str); 3] = [
        ("empty.gguf", b"", "damaged or cut short"),
        ("text.gguf", b"hello world", "not a gguf file"),
        ("cut.gguf", &bytes[..bytes.len() - 5000], "cut short"),
    ];
    for (name, bytes, reason) in cases {
        let path = model.beside(name);
        std::fs::write(&path, bytes).unwrap();
        for command in [&["run", path.as_str(), "-p", "x"][..], &["inspect", &path], &["tokenize", &path, "x"]] {
            let line = run(command).failed(1);
            assert!(line.contains(name) && line.contains(reason), "{line}");
        }
    }
}

#[test]
fn an_unknown_architecture_names_the_known() {
    let model = Model::new(&tiny::builder(0.1).set("general.architecture", "mamba"));
    let line = run(&["run", model.path(), "-p", "x"]).failed(1);
    assert!(line.contains("tiny.gguf") && line.contains("\"mamba\"") && line.contains("qwen3"), "{line}");
}

#[test]
fn a_tensor_of_the_wrong_shape_is_named_once() {
    let model = Model::new(&tiny::builder(0.1).set("qwen3.feed_forward_length", 128u32));
    let line = run(&["run", model.path(), "-p", "x", "--device", "cpu"]).failed(1);
    assert!(line.matches("blk.0.ffn_gate.weight").count() == 1 && line.matches("tiny.gguf").count() == 1, "{line}");
}

#[test]
fn text_from_a_file_cannot_steer_the_terminal() {
    let model = Model::new(&tiny::builder(0.1).set("general.architecture", "\u{1b}[2J\nx"));
    let line = run(&["run", model.path(), "-p", "x"]).failed(1);
    assert!(!line.contains('\u{1b}'), "{line:?}");
    let model = Model::new(&tiny::builder(0.1).set("general.\u{1b}[2J", "\u{1b}]0;x\u{7}"));
    assert!(!run(&["inspect", model.path()]).good().contains('\u{1b}'));
}

#[test]
fn an_adapter_that_is_not_there_lists_those_that_are() {
    let line = run(&["run", "-p", "x", "--device", "no such adapter"]).failed(1);
    assert!(line.contains("no such adapter") && line.contains("adapters here"), "{line}");
}

/// Simulates a machine without a driver: Vulkan's loader is given a driver file that does not
/// exist.
#[cfg(target_os = "linux")]
#[test]
fn without_a_driver_the_default_model_answers_and_a_gpu_is_asked_for_in_vain() {
    let bare = |words: &[&str]| -> crate::Run {
        let drivers = ["VK_ICD_FILENAMES", "VK_DRIVER_FILES"].map(|name| (name, "/nonexistent/driver.json"));
        crate::weft(words).envs(drivers).output().unwrap().into()
    };
    assert_eq!(bare(&["devices", "--json"]).good(), "[]\n");
    assert_eq!(bare(&["run", "-p", "Where does Wren live?"]).good(), "Wren lives in Windle.\n");
    assert!(bare(&["devices"]).good().contains("is a Vulkan, Metal or DX12 driver installed?"));
    for words in [&["run", "-p", "x"][..], &["bench"], &["inspect", "--plan"], &["logits", "--tokens", "1", "-o", "-"]]
    {
        let line = bare(&[words, &["--device", "gpu"]].concat()).failed(1);
        assert!(line.contains("driver installed?") && line.contains("adapters here: none"), "{line}");
    }
}
