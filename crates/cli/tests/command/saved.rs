//! Sessions that one process saves and another continues, and contexts that shift.

use crate::run;
use crate::tiny::{self, Model};

fn answer(words: &[&str]) -> serde_json::Value {
    run(&[&["run", "--json"], words].concat()).json()
}

#[test]
fn a_conversation_goes_on_where_it_was_saved_and_is_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talk.weft").to_str().unwrap().to_string();
    let cpu = |words: &[&str]| answer(&[&["--device", "cpu"], words].concat());
    let first = cpu(&["-p", "Where does Wren live?", "--seed", "3", "--save-session", &file]);
    let second = cpu(&["-p", "What is 3 + 4?", "--load-session", &file, "--save-session", &file]);
    let tokens = |answer: &serde_json::Value| answer["prompt_tokens"].as_u64().unwrap();
    assert_eq!((second["text"].as_str(), second["seed"].as_u64()), (Some("3 + 4 = 7."), Some(3)), "sampled as before");
    assert!(tokens(&second) > tokens(&first) + 5, "the first turn is part of the prompt: {first} {second}");
    let words = ["run", "--device", "cpu", "-p", "What is 3 + 4?", "--load-session", &file, "--stats", "--json"];
    let third = run(&words);
    let read: u64 = third.err.split("prompt ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    let prompt = tokens(&third.json());
    assert!(2 * read < prompt, "{read} of {prompt} tokens were read");
}

#[test]
fn a_text_goes_on_as_if_it_had_never_stopped_on_either_executor() {
    let model = Model::new(&tiny::builder(0.5));
    let file = model.beside("text.weft");
    let sampled = ["--raw", "--temp", "1.2", "--seed", "5"];
    let on =
        |device: &str, words: &[&str]| answer(&[&[model.path(), "--device", device, "--kv", "f32"], words].concat());
    let whole = on("cpu", &[&["-p", "ab", "-n", "20"], &sampled[..]].concat());
    let part = on("gpu", &[&["-p", "ab", "-n", "8", "--save-session", &file], &sampled[..]].concat());
    // The saved session gave the same tokens. Below, both devices continue it with a new prompt.
    let ids = |answer: &serde_json::Value| answer["tokens"].as_array().unwrap().clone();
    assert_eq!(ids(&whole)[..8], ids(&part));
    let session = std::fs::read(&file).unwrap();
    for device in ["cpu", "gpu"] {
        let rest = on(device, &["--raw", "-p", "ba", "-n", "5", "--load-session", &file]);
        let again = on("cpu", &["--raw", "-p", "ba", "-n", "5", "--load-session", &file]);
        assert_eq!((ids(&rest), rest["seed"].as_u64()), (ids(&again), Some(5)), "{device}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), session, "loading changes nothing");
}

#[test]
fn a_session_that_cannot_be_used_says_why_in_a_line() {
    let (model, other) = (Model::new(&tiny::builder(0.5)), Model::new(&tiny::builder(0.4)));
    let file = model.beside("talk.weft");
    let with = |model: &Model, words: &[&str]| {
        run(&[&["run", model.path(), "--device", "cpu", "-p", "ab", "-n", "2"], words].concat())
    };
    with(&model, &["--save-session", &file]).good();
    let bytes = std::fs::read(&file).unwrap();
    let broken = |bytes: &[u8]| {
        let path = model.beside("broken.weft");
        std::fs::write(&path, bytes).unwrap();
        with(&model, &["--load-session", &path]).failed(1)
    };
    let altered = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        broken(&bytes)
    };
    assert!(broken(&bytes[..bytes.len() - 1]).contains("cut short"));
    assert!(altered(bytes.len() - 40).contains("checksum"));
    assert!(altered(40).contains("checksum"));
    assert!(altered(8).contains("version"));
    assert!(broken(b"").contains("cut short") && broken(b"something else entirely").contains("not a saved session"));
    assert!(broken(&[&bytes[..], b"x"].concat()).contains("more in the file"));
    assert!(with(&other, &["--load-session", &file]).failed(1).contains("another model"));
    assert!(
        with(&model, &["--load-session", &file, "--kv", "f32"]).failed(1).contains("choose the KV type f16 (see --kv)")
    );
    assert!(with(&model, &["--load-session", &file, "--ctx", "4"]).failed(1).contains("--ctx"));
    assert!(with(&model, &["--load-session", &model.beside("missing")]).failed(1).contains("missing"));
    assert!(with(&model, &["--save-session", &model.beside("no/folder")]).failed(1).contains("no folder"));
    if cfg!(target_os = "linux") {
        let line = with(&model, &["--save-session", "/proc/talk.weft"]).failed(1);
        assert!(line.contains("--save-session cannot be written") && line.contains("/proc/talk.weft"), "{line}");
    }
    with(&model, &["--raw", "--save-session", &file]).good();
    assert!(with(&model, &["--load-session", &file]).failed(1).contains("--raw"));
}

#[test]
fn a_conversation_under_adapters_goes_on_under_the_same() {
    let model = Model::new(&tiny::builder(0.5));
    let (adapter, file) = (crate::lora::gguf(&model, "a.gguf", 32), model.beside("talk.weft"));
    let words = ["run", model.path(), "--device", "cpu", "-p", "ab", "-n", "3", "--temp", "0"];
    let with = |more: &[&str]| run(&[&words, more].concat());
    let both = [&["--lora", &adapter][..], &["--save-session", &file]].concat();
    with(&both).good();
    with(&["--lora", &adapter, "--load-session", &file]).good();
    let line = with(&["--load-session", &file]).failed(1);
    assert!(line.contains("saved under a.gguf times 1, this one is under no adapters"), "{line}");
    let line = with(&["--lora", &format!("{adapter}:0.5"), "--load-session", &file]).failed(1);
    assert!(line.contains("under a.gguf times 0.5; apply the same adapters in the same order (see --lora)"), "{line}");
}

#[test]
fn a_context_shifts_only_where_that_is_asked_for_and_says_so() {
    let model = Model::new(&tiny::builder(0.5));
    let words =
        ["run", model.path(), "--device", "cpu", "--raw", "-p", "ab ba ab", "--ctx", "16", "-n", "40", "--seed", "1"];
    let ended = run(&words);
    assert!(ended.code == 0 && ended.err.contains("--ctx"), "{}", ended.err);
    let shifted = run(&[&words[..], &["--shift-context=2", "--json"]].concat());
    assert!(shifted.err.contains("forgotten"), "{}", shifted.err);
    assert_eq!(shifted.json()["tokens"].as_array().unwrap().len(), 40);
}
