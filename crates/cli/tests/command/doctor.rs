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
fn what_cannot_be_compared_is_one_line_with_the_way_out() {
    let run = doctor(&["--device", "cpu"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("the CPU is what a GPU is compared with") && run.err.contains("--device"), "{}", run.err);
    let run = Run::from(weft(&["doctor", "--tokens", "100000"]).output().unwrap());
    assert!(
        run.code == 2 && run.err.contains("--tokens 100000") && run.err.contains("between 1 and") && !run.err.contains("--ctx"),
        "{}",
        run.err
    );
    let run = doctor(&["no-such.gguf"]);
    assert!(run.code == 1 && run.err.contains("no-such.gguf"), "{}", run.err);
}
