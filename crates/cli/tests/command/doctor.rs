//! `weft doctor`: the kernels of a model on the GPU, compared with the CPU.

use crate::{Run, weft};

fn doctor(words: &[&str]) -> Run {
    weft(&[&["doctor", "--tokens", "9"], words].concat()).output().unwrap().into()
}

#[test]
fn a_report_has_every_kernel_with_its_error_and_its_bound() {
    let run = doctor(&[]);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    let (head, rest) = run.out.split_once('\n').unwrap();
    assert!(head.starts_with(&format!("weft {} on ", env!("CARGO_PKG_VERSION"))) && head.contains("driver"), "{head}");
    assert!(rest.starts_with("the default model, fast activations, f16 KV\n"), "{rest}");
    let table: Vec<&str> = rest.lines().filter(|line| line.starts_with("ok ")).collect();
    assert!(rest.ends_with(&format!("all {} operations agree\n", table.len())), "{rest}");
    for wanted in ["a prompt of 9 tokens", "a step of one token", "embed", "attention", "sample"] {
        assert!(rest.contains(wanted), "no {wanted} in {rest}");
    }
    let all = doctor(&["--all", "--precision", "f32", "--kv", "f32", "--json"]).json();
    assert!(all["agrees"] == true && all["precision"] == "f32" && all["kv"] == "f32", "{all}");
    let operations = all["operations"].as_array().unwrap();
    assert!(operations.len() > table.len(), "{} operations, {} of them different", operations.len(), table.len());
    for of in operations {
        assert!(of["agrees"] == true && of["error"].as_f64().unwrap() <= of["bound"].as_f64().unwrap(), "{of}");
        assert!(of["kernels"].as_str().is_some_and(|kernels| !kernels.is_empty()), "{of}");
    }
}

#[test]
fn a_walk_compares_batches_and_deep_contexts_and_its_report_names_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (model, file) = (folder.path().join("private.gguf"), folder.path().join("report.json"));
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/assets/default.gguf"), &model).unwrap();
    let words = ["doctor", model.to_str().unwrap(), "--ctx", "90", "--seed", "5", "--report", file.to_str().unwrap()];
    let run = Run::from(weft(&words).output().unwrap());
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("--seed 5") && run.out.contains(" operations agree"), "{}", run.out);
    // Kernels of other options are named, and none of these options is left out.
    assert!(run.out.contains("not run, with --precision f32 --kv f16: "), "{}", run.out);
    assert!(!run.out.contains("not run, with --precision fast --kv f16: "), "{}", run.out);
    assert!(run.err.contains("the report is in "), "{}", run.err);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("private") && !text.contains(folder.path().to_str().unwrap()), "{text}");
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(
        report["format"] == 1 && report["agrees"] == true && report["seed"] == 5 && report["context"] == 90,
        "{report}"
    );
    assert!(report["device"]["driver"].is_string() && report["device"]["features"].is_array(), "{report}");
    let steps: Vec<&str> =
        report["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    for wanted in ["90 rows from position 0", "1 row at position 89", "1 row of each of 3 sequences at position"] {
        assert!(steps.iter().any(|step| step.starts_with(wanted)), "no {wanted} in {steps:?}");
    }
    for of in report["operations"].as_array().unwrap() {
        assert!(of["agrees"] == true && of["compared"].as_u64() > Some(0) && of["kernels"][0].is_string(), "{of}");
    }
    let run = doctor(&["--report", "x.json"]);
    assert!(run.code == 2 && run.err.contains("--report"), "{}", run.err);
}

#[test]
fn what_cannot_be_compared_is_one_line_with_the_way_out() {
    let run = doctor(&["--device", "cpu"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("the CPU is what a GPU is compared with") && run.err.contains("--device"), "{}", run.err);
    let run = Run::from(weft(&["doctor", "--tokens", "100000"]).output().unwrap());
    assert!(
        run.code == 2
            && run.err.contains("--tokens 100000")
            && run.err.contains("between 1 and")
            && !run.err.contains("--ctx"),
        "{}",
        run.err
    );
    let run = doctor(&["no-such.gguf"]);
    assert!(run.code == 1 && run.err.contains("no-such.gguf"), "{}", run.err);
}
