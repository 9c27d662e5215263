//! When a run ends, what it shows meanwhile, and how it goes on without its flags.

use super::{bytes, model, objects, train};
use crate::{run, tiny::Model, weft};
use std::path::Path;

/// A model with so many examples.
fn with_examples(count: usize) -> Model {
    let model = model();
    let lines = (0..count).map(|n| format!("{{\"prompt\": \"after {n}\", \"completion\": \"comes {}\"}}\n", n + 1));
    std::fs::write(model.beside("facts.jsonl"), lines.collect::<String>()).expect("room");
    model
}

#[test]
fn of_a_hundred_examples_a_share_is_held_out_and_told() {
    let model = with_examples(100);
    let out = model.beside("out");
    let lines = objects(&train(&model, &out, &["--steps", "10", "--lr", "1e-2"]).good());
    let (last, steps) = lines.split_last().expect("lines");
    let validated: Vec<_> = steps.iter().filter(|step| step["validation"].is_number()).collect();
    assert_eq!(validated.len(), 10, "{validated:?}");
    let samples = validated[0]["samples"].as_array().expect("answers");
    assert_eq!(samples.len(), 2);
    let sample = &samples[0];
    assert!(sample["prompt"].as_str().is_some_and(|prompt| prompt.contains("after ")), "{sample}");
    assert!(sample["expected"].as_str().is_some_and(|text| text.contains("comes ")) && sample["answer"].is_string());
    let least =
        validated.iter().min_by(|a, b| a["validation"].as_f64().partial_cmp(&b["validation"].as_f64()).unwrap());
    assert_eq!(last["best_step"], least.expect("a step")["step"]);
    assert_eq!((&last["ended"], &last["output"]), (&"steps".into(), &out.as_str().into()));
    let held: serde_json::Value = serde_json::from_slice(&bytes(&out, "held-out.json")).expect("JSON");
    assert_eq!(held["examples"].as_array().map(Vec::len), Some(10), "{held}");
    assert!(Path::new(&out).join("last/adapter.gguf").exists());
    // All is learnt where the flag says so, and of fewer examples.
    let all = objects(&train(&model, &out, &["--steps", "1", "--no-auto-val", "--force"]).good());
    assert!(all[0]["validation"].is_null() && !Path::new(&out).join("last").exists());
    let few = with_examples(99);
    assert!(objects(&train(&few, &few.beside("out"), &["--steps", "1"]).good())[0]["validation"].is_null());
    let asked = train(&few, &few.beside("asked"), &["--steps", "1", "--samples", "1"]);
    assert!(asked.code == 0 && asked.err.contains("no examples are held out, so --samples"), "{}", asked.err);
}

#[test]
fn the_folder_holds_the_best_adapter_and_last_the_last_one() {
    let model = with_examples(100);
    let out = model.beside("out");
    // With this rate the run is best in the middle, and is given up before its end.
    let flags = ["--steps", "60", "--lr", "0.05", "--schedule", "constant", "--patience", "2", "--samples", "0"];
    let lines = objects(&train(&model, &out, &flags).good());
    let (last, steps) = lines.split_last().expect("lines");
    let best = last["best_step"].as_u64().expect("a step");
    assert_eq!((&last["ended"], steps.len() as u64), (&"patience".into(), best + 12), "{last}");
    let shorter = model.beside("shorter");
    let until = best.to_string();
    let flags = ["--steps", &until, "--lr", "0.05", "--schedule", "constant", "--warmup", "6", "--samples", "0"];
    train(&model, &shorter, &flags).good();
    let adapter = |folder: &str| bytes(folder, "adapter_model.safetensors");
    assert!(adapter(&out) == adapter(&shorter), "the best one");
    assert!(adapter(&out) != adapter(&format!("{out}/last")));
}

#[test]
fn a_run_goes_on_without_its_flags_and_a_constant_one_becomes_longer() {
    let model = model();
    let (whole, parts) = (model.beside("whole"), model.beside("parts of it"));
    // The decay depends on the number of steps here. The folder keeps the decay of the first start.
    let flags = |steps: &'static str| ["--steps", steps, "--schedule", "constant", "--warmup", "2"];
    train(&model, &parts, &flags("4")).good();
    let kept: serde_json::Value = serde_json::from_slice(&bytes(&parts, "run.json")).expect("JSON");
    let decay = kept["decay"].to_string();
    train(&model, &whole, &[&flags("7")[..], &["--decay", &decay]].concat()).good();
    let on = run(&["train", "--resume", "-o", &parts, "--steps", "7", "--json"]);
    assert_eq!(on.code, 0, "{}", on.err);
    assert_eq!(objects(&on.out).len(), 4);
    assert!(bytes(&whole, "adapter_model.safetensors") == bytes(&parts, "adapter_model.safetensors"));
    // A cosine has fallen to its end: the line has a command that learns more, and it runs.
    let cosine = model.beside("cosine");
    train(&model, &cosine, &["--steps", "4"]).good();
    let refused = run(&["train", "--resume", "-o", &cosine, "--steps", "7"]);
    let line = refused.err.lines().last().expect("a line");
    assert!(line.contains("it has 4 steps, now 7") && refused.code == 1, "{line}");
    let (_, command) = line.rsplit_once("weft ").expect("a command");
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!((words[0], words[1]), ("train", model.path()));
    assert_eq!(run(&[&words[..], &["--device", "cpu"]].concat()).code, 0, "{command}");
    // Without the flags of the run, a line says what is missing.
    std::fs::remove_file(Path::new(&parts).join("run.json")).expect("a file");
    let lacking = run(&["train", "--resume", "-o", &parts]).failed(2);
    assert!(lacking.contains("give all flags of the run"), "{lacking}");
    std::fs::write(Path::new(&parts).join("run.json"), "{").expect("room");
    assert!(run(&["train", "--resume", "-o", &parts]).failed(1).contains("the flags of the run are damaged"));
}

#[test]
fn a_run_goes_on_from_another_folder() {
    let model = model();
    let folder = Path::new(model.path()).parent().expect("a folder");
    let mut first =
        weft(&["train", "tiny.gguf", "--data", "facts.jsonl", "-o", "out", "--steps", "2", "--device", "cpu"]);
    assert!(first.current_dir(folder).output().expect("the binary starts").status.success());
    let out = model.beside("out");
    std::fs::remove_file(format!("{out}/checkpoint-00000002.safetensors")).expect("a checkpoint");
    let on = run(&["train", "--resume", "-o", &out]);
    assert_eq!(on.code, 0, "{}", on.err);
}

#[test]
fn a_dry_run_writes_nothing_whatever_the_folder_holds() {
    let model = model();
    let out = model.beside("out");
    let dry = |output: &str, more: &[&str]| train(&model, output, &[&["--steps", "2", "--dry-run"], more].concat());
    assert_eq!(dry(&out, &[]).code, 0);
    assert!(!Path::new(&out).exists());
    train(&model, &out, &["--steps", "2"]).good();
    let files = || {
        let files = std::fs::read_dir(&out).expect("a folder").flatten();
        let mut files: Vec<_> =
            files.map(|file| (file.file_name(), file.metadata().unwrap().modified().unwrap())).collect();
        files.sort();
        files
    };
    let before = files();
    for more in [&[][..], &["--resume"], &["--force"]] {
        assert_eq!(dry(&out, more).code, 0, "{more:?}");
        assert_eq!(files(), before, "{more:?}");
    }
}

#[test]
fn what_is_rehearsed_is_answered_by_the_base_and_kept() {
    let model = model();
    let [out, prompts] = ["out", "prompts.txt"].map(|name| model.beside(name));
    std::fs::write(&prompts, "after 1\n{\"prompt\": \"after 2\"}\n").expect("room");
    let flags = ["--steps", "4", "--schedule", "constant", "--warmup", "1", "--decay", "0.5", "--rehearse", &prompts];
    train(&model, &out, &flags).good();
    let kept = bytes(&out, "rehearsal.jsonl");
    let lines = objects(std::str::from_utf8(&kept).expect("text"));
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["messages"][0]["content"], &lines[0]["messages"][1]["role"]),
        (&"after 1".into(), &"assistant".into())
    );
    let plain = model.beside("plain");
    train(&model, &plain, &flags[..8]).good();
    assert!(bytes(&out, "adapter_model.safetensors") != bytes(&plain, "adapter_model.safetensors"));
    // The answers are kept, so the run goes on with the same bits.
    let whole = model.beside("whole");
    train(&model, &whole, &[&["--steps", "6"], &flags[2..]].concat()).good();
    assert_eq!(run(&["train", "--resume", "-o", &out, "--steps", "6"]).code, 0);
    assert!(bytes(&out, "adapter_model.safetensors") == bytes(&whole, "adapter_model.safetensors"));
    let alone = train(&model, &plain, &["--rehearse", &prompts, "--batch", "1", "--force"]);
    assert!(alone.code == 2, "{}", alone.err);
    std::fs::write(&prompts, "{\"text\": \"no prompt\"}\n").expect("room");
    let refused = train(&model, &plain, &["--rehearse", &prompts, "--force"]).failed(1);
    assert!(refused.contains("prompts.txt: line 1 has no prompt"), "{refused}");
}

#[test]
fn a_rate_that_is_too_large_ends_the_run_with_the_way_out() {
    let model = model();
    let out = model.beside("out");
    let given_up = train(&model, &out, &["--lr", "1e9", "--steps", "60", "--warmup", "0"]);
    assert_eq!(given_up.code, 1, "{}", given_up.err);
    let line = given_up.err.lines().last().expect("a line");
    assert!(line.contains("--lr 1e8, or leave --lr out") && !line.contains("try: weft run"), "{line}");
    assert!(given_up.out.lines().count() < 30, "{}", given_up.out);
}
