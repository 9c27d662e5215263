//! `weft train --dry-run`: what a run would take.

use crate::run;
use crate::train::{model, objects};

#[test]
fn a_dry_run_tells_memory_time_and_examples_and_trains_nothing() {
    let model = model();
    let data = model.beside("facts.jsonl");
    let words = ["train", model.path(), "--data", &data, "--device", "cpu", "--dry-run"];
    let text = run(&words).good();
    for said in
        ["memory    ", " MB are free\n", "trained ", "s for one step", "example 5", "t⟦he number 0 is followed by 1⟧"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    let object = objects(&run(&[&words[..], &["--json"]].concat()).good()).remove(0);
    assert_eq!(object["examples"].as_array().map(Vec::len), Some(5));
    assert!(object["free_bytes"].as_u64() > object["memory_bytes"].as_u64());
    assert!(
        object["memory_bytes"].as_u64() > Some(10_000) && object["seconds_per_step"].as_f64() > Some(0.0),
        "{object}"
    );
}

#[test]
fn an_estimate_holds_what_steps_use_and_no_more() {
    let model = model();
    let data = model.beside("facts.jsonl");
    let estimate = |device: &str, more: &[&str]| {
        let words = ["train", model.path(), "--data", &data, "--device", device, "--batch", "4", "--dry-run", "--json"];
        // A software driver is no GPU, and says so on stderr.
        let ran = run(&[&words[..], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        objects(&ran.out).remove(0)["memory_bytes"].as_u64().expect("bytes")
    };
    // Every batch has about 160 tokens, every example about 40.
    let usual = estimate("cpu", &[]);
    assert_eq!(estimate("cpu", &["--micro", "9000"]), estimate("cpu", &["--micro", "300"]));
    assert!(estimate("cpu", &["--no-pack"]) < usual);
    assert_eq!(estimate("cpu", &["--no-pack", "--micro", "9000"]), estimate("cpu", &["--no-pack"]));
    // Validation has a plan of its own on a GPU.
    let (without, with) = (estimate("gpu", &["--micro", "256"]), estimate("gpu", &["--micro", "256", "--val", &data]));
    assert!(with > without, "{with} {without}");
}
