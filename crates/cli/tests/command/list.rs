//! `weft list`.

use crate::ollama::Store;
use crate::tiny;

#[test]
fn the_default_ollamas_and_a_folders_models_are_listed() {
    let store = Store::new();
    let blob = store.add("tiny/7b", &tiny::builder(0.5), &[]);
    let folder = store.root().join("models/deep");
    std::fs::create_dir_all(&folder).unwrap();
    tiny::builder(0.5).set("general.file_type", 15u32).save(folder.join("mine.gguf")).unwrap();
    std::fs::write(folder.join("broken.gguf"), "hello world").unwrap();
    let models = store.root().join("models");
    let json = store.run(&["list", models.to_str().unwrap(), "--device", "cpu", "--json"]).json();
    let rows: Vec<_> =
        json.as_array().unwrap().iter().map(|row| (row["from"].as_str().unwrap(), row["fits"].as_bool())).collect();
    assert_eq!(rows, [("weft", Some(true)), ("ollama", Some(true)), ("folder", Some(false)), ("folder", Some(true))]);
    assert_eq!((json[0]["model"].as_str(), json[0]["architecture"].as_str()), (Some("default"), Some("qwen3")));
    assert_eq!((json[1]["model"].as_str(), json[1]["path"].as_str()), (Some("tiny:7b"), blob.to_str()));
    assert_eq!((json[1]["types"].as_str(), json[3]["types"].as_str()), (Some("F32"), Some("Q4_K_M")));
    assert_eq!(json[1]["bytes"], std::fs::metadata(&blob).unwrap().len());
    assert!(json[2]["cannot_run"].as_str().unwrap().contains("not a gguf file"), "{}", json[2]);
    let text = store.run(&["list", models.to_str().unwrap(), "--device", "cpu"]).good();
    assert!(
        text.lines().count() == 5 && text.contains("tiny:7b") && text.contains("Q4_K_M") && text.contains("yes, in "),
        "{text}"
    );
    assert!(text.contains("cannot run: "), "{text}");
}

#[test]
fn a_context_that_a_model_lacks_is_cut_to_what_it_has() {
    let store = Store::new();
    let json = store.run(&["list", "--device", "cpu", "--ctx", "4000000000", "--json"]).json();
    assert_eq!((json[0]["fits"].as_bool(), json.as_array().unwrap().len()), (Some(true), 1));
}

#[test]
fn damaged_entries_of_a_store_are_listed_with_the_reason() {
    let store = Store::new();
    let blob = store.add("tiny/7b", &tiny::builder(0.5), &[]);
    std::fs::write(&blob, "short").unwrap();
    let text = store.run(&["list", "--device", "cpu"]).good();
    assert!(text.contains("cannot run: tiny:7b is damaged"), "{text}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let store = Store::new();
    assert!(store.run(&["list", "no/such"]).failed(1).contains("no/such: no such folder"));
    assert!(store.run(&["list", "--device", "no such adapter"]).failed(1).contains("no such adapter"));
}
