//! `weft tune`: its table is saved and used, and ignored if it is damaged or switched off.

use crate::{Run, weft};
use std::fs;
use std::path::{Path, PathBuf};

fn run(folder: &Path, words: &[&str]) -> Run {
    weft(words).env("WEFT_CACHE_DIR", folder).output().unwrap().into()
}

fn tables(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("table-")).collect()
}

/// The plans of the default model on the GPU, and the output on stderr.
fn plan(folder: &Path, more: &[&str]) -> (String, String) {
    let run = run(folder, &[&["inspect", "--plan", "--device", "gpu"], more].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    (run.out, run.err)
}

/// Whether `weft devices` reports a tuned table for the first adapter.
fn tuned(folder: &Path, more: &[&str]) -> bool {
    let json = run(folder, &[&["devices", "--no-measure", "--json"], more].concat()).json();
    assert!(json[0]["table"]["q8_rows"].is_u64(), "{json}");
    json[0]["tuned"].as_bool().unwrap()
}

#[test]
fn what_is_measured_is_kept_and_forgotten_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(!tuned(folder, &[]));
    let json = run(folder, &["tune", "--device", "gpu", "--seconds", "3", "--json"]).json();
    let [file] = tables(folder).try_into().expect("one file for the adapter");
    assert_eq!(json["file"], file.to_str().unwrap());
    let measured = json["measured"].as_array().unwrap();
    assert!(measured.iter().any(|trial| trial["tries"][0]["with_us"].as_f64().is_some_and(|us| us > 0.0)), "{json}");
    let text = fs::read_to_string(&file).unwrap();
    for trial in measured {
        let line = format!("\n{} {}\n", trial["threshold"].as_str().unwrap(), trial["chosen"]);
        assert!(text.contains(&line), "{text}");
    }
    assert!(tuned(folder, &[]) && !tuned(folder, &["--no-tune"]) && !tuned(folder, &["--no-cache"]));
    assert!(run(folder, &["devices", "--no-measure"]).good().contains("the table that weft tune measured here"));
    assert!(run(folder, &["tune", "--forget"]).good().contains("is deleted"));
    assert!(tables(folder).is_empty() && !tuned(folder, &[]));
    assert_eq!(run(folder, &["tune", "--forget", "--json"]).json()["forgotten"], false);
}

#[test]
fn commands_choose_by_what_was_kept_and_as_usual_where_that_is_damaged_or_not_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let usual = plan(folder, &[]).0;
    run(folder, &["tune", "--device", "gpu", "--seconds", "2"]);
    let [file] = tables(folder).try_into().expect("one file for the adapter");
    let text = fs::read_to_string(&file).unwrap();
    let line = text.lines().find(|line| line.starts_with("q8_rows ")).unwrap();
    fs::write(&file, text.replace(line, "q8_rows 0")).unwrap();
    let (other, said) = plan(folder, &[]);
    assert!(usual.contains("q8") && !other.contains("matmul_vec_q8") && !other.contains("pack_q8"), "{other}");
    assert!(!said.contains("table-"), "{said}");
    assert_eq!(plan(folder, &["--no-tune"]).0, usual);
    let of_another = text.replace("weft 0", "weft 9");
    for damaged in ["", &text[..text.len() - 1], &text.replace(line, "q8_rows 3000"), &of_another] {
        fs::write(&file, damaged).unwrap();
        let (again, said) = plan(folder, &[]);
        assert!(said.lines().filter(|line| line.contains("is damaged")).count() == 1, "{said}");
        assert_eq!(again, usual);
    }
}

#[test]
fn a_model_gives_the_shapes_and_one_that_is_none_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let model = crate::tiny::Model::new(&crate::tiny::builder(0.1));
    let json = run(folder.path(), &["tune", model.path(), "--device", "gpu", "--seconds", "1", "--json"]).json();
    assert_eq!(json["measured"].as_array().unwrap().len(), kernels::THRESHOLDS.len(), "{json}");
    let missing = run(folder.path(), &["tune", "no-such-model.gguf", "--device", "gpu"]).failed(1);
    assert!(missing.contains("no such file"), "{missing}");
}

/// `auto` never takes a software adapter: a table for it is measured only where it is asked for.
#[test]
fn a_software_adapter_is_tuned_only_if_the_device_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let device = run(folder.path(), &["devices", "--no-measure", "--json"]).json()[0].clone();
    let tuned = run(folder.path(), &["tune", "--seconds", "1"]);
    if device["class"] == "software" {
        let line = tuned.failed(2);
        assert!(line.contains("which --device auto never takes") && line.contains("--device gpu"), "{line}");
        assert!(tables(folder.path()).is_empty());
        let named = run(folder.path(), &["tune", "--seconds", "1", "--device", device["name"].as_str().unwrap()]);
        assert!(named.err.contains("only --device uses its table"), "{}", named.err);
        assert_eq!(named.code, 0, "{}", named.err);
    } else {
        tuned.good();
    }
}
