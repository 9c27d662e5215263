//! The cache folder: its files are used, replaced if damaged, and never prevent an answer.

use crate::tiny::{self, Model};
use crate::{Run, weft};
use std::fs;
use std::path::{Path, PathBuf};

/// A short answer from the best GPU or a software adapter, with this cache folder.
fn answer(model: &Model, folder: &Path, more: &[&str]) -> Run {
    let words = ["run", model.path(), "--raw", "-p", "ab", "-n", "2", "--temp", "0", "--device", "gpu", "--json"];
    let mut command = weft(&[&words, more].concat());
    // Under WebGPU's limits there is no pipeline cache.
    command.env_remove("WEFT_LIMITS").env("WEFT_CACHE_DIR", folder).env("WEFT_DEBUG", "1").output().unwrap().into()
}

fn kept(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("pipelines-")).collect()
}

/// The lines about cached pipelines.
fn said(run: &Run) -> Vec<&str> {
    run.err.lines().filter(|line| line.contains("pipelines-")).collect()
}

#[test]
fn shaders_are_kept_used_and_replaced_where_the_file_is_damaged() {
    let (model, folder) = (Model::new(&tiny::builder(0.1)), tempfile::tempdir().unwrap());
    let caches = folder.path().join("made/when/needed");
    let first = answer(&model, &caches, &[]).json();
    assert!(
        first["timings"]["pipelines"].as_u64().unwrap() > 5 && first["timings"]["shaders_ms"].as_f64().unwrap() > 0.0
    );
    let [file] = kept(&caches).try_into().expect("one file for the adapter");
    let whole = fs::read(&file).unwrap();
    let modified = || fs::metadata(&file).unwrap().modified().unwrap();
    let before = modified();
    let second = answer(&model, &caches, &[]);
    assert!(said(&second).is_empty(), "{}", second.err);
    assert_eq!(second.json()["tokens"], first["tokens"]);
    assert_eq!(modified(), before, "nothing new was learned");
    for damaged in [&whole[..whole.len() - 1], b"", b"no cache of ours"] {
        fs::write(&file, damaged).unwrap();
        let run = answer(&model, &caches, &[]);
        assert!(said(&run).len() == 1 && said(&run)[0].contains("damaged"), "{}", run.err);
        assert_eq!(run.json()["tokens"], first["tokens"]);
        assert_eq!(fs::read(&file).unwrap().len(), whole.len());
    }
}

#[test]
fn nothing_is_kept_where_it_is_switched_off() {
    let (model, folder) = (Model::new(&tiny::builder(0.1)), tempfile::tempdir().unwrap());
    answer(&model, folder.path(), &["--no-cache"]).json();
    assert!(kept(folder.path()).is_empty());
}

#[test]
fn a_folder_that_cannot_be_written_costs_one_line_and_no_answer() {
    let (model, folder) = (Model::new(&tiny::builder(0.1)), tempfile::tempdir().unwrap());
    let in_the_way = folder.path().join("file");
    fs::write(&in_the_way, "a file where the folder should be").unwrap();
    let run = answer(&model, &in_the_way.join("weft"), &[]);
    let lines: Vec<&str> = run.err.lines().filter(|line| line.contains("cannot ")).collect();
    // Pipelines and table cannot be read there either. The number of these lines depends on the
    // system.
    assert!(lines.iter().filter(|line| line.contains("cannot keep")).count() == 1 && lines.len() <= 3, "{}", run.err);
    run.json();
}
