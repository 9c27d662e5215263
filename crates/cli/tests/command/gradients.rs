//! `weft gradients`: its report, its files, and what it refuses.

use crate::{lora, piped, run, tiny};
use serde_json::Value;
use std::path::Path;

const DATA: &str = "{\"ids\": [5, 6, 7, 8, 9]}\n{\"ids\": [9, 10, 11], \"targets\": [-100, 3, 4]}\n";

/// A folder with a small model and examples.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    tiny::builder(0.1).save(folder.path().join("tiny.gguf")).expect("room");
    std::fs::write(folder.path().join("facts.jsonl"), DATA).expect("room");
    folder
}

/// The tensors of a safetensors file by name: name, shape and values.
fn tensors(path: &Path) -> Vec<(String, Vec<usize>, Vec<f32>)> {
    let bytes = std::fs::read(path).expect("a file");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let values = |data: &[u8]| data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let mut all: Vec<_> =
        file.iter().map(|(name, view)| (name.to_string(), view.shape().to_vec(), values(view.data()))).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn a_batch_gives_a_report_and_gradients_under_pefts_names() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (model, data) = (at("tiny.gguf"), at("facts.jsonl"));
    let mut first: Option<(Value, Vec<_>)> = None;
    for (n, more) in [
        &["--device", "cpu"][..],
        &["--device", "cpu", "--checkpointing", "layer", "--precision", "fast"],
        &["--device", "gpu"],
    ]
    .into_iter()
    .enumerate()
    {
        let out = at(&format!("{n}.safetensors"));
        let words = [&["gradients", &model, "--data", &data, "-o", &out, "--rank", "3", "--json"], more].concat();
        let run = run(&words);
        // A software adapter says that it is no GPU.
        assert!(run.code == 0 && (n == 2 || run.err.is_empty()), "{more:?}: {}", run.err);
        let report: Value = serde_json::from_str(&run.out).expect("one JSON object");
        assert_eq!((report["targets"].as_u64(), report["tokens"].as_u64()), (Some(6), Some(8)));
        let got = tensors(Path::new(&out));
        assert_eq!(report["tensors"].as_u64(), Some(got.len() as u64));
        let (name, shape, values) = got
            .iter()
            .find(|(name, ..)| name.ends_with("layers.0.self_attn.q_proj.lora_B.weight"))
            .expect("a gradient");
        assert!(name.starts_with("base_model.model.model.layers.0") && shape[1] == 3, "{name} {shape:?}");
        assert!(values.iter().any(|v| *v != 0.0), "B is zero, its gradient is not");
        match &first {
            None => first = Some((report, got)),
            Some((before, of)) => {
                let [a, b] = [&report, before].map(|report| report["loss"].as_f64().expect("a loss"));
                assert!((a - b).abs() <= 1e-5 * b, "{a} and {b}");
                assert!(
                    n != 1 || *of == got,
                    "layers that are computed again, and the fast mode of a CPU, change no bit"
                );
            }
        }
    }
    let text = run(&["gradients", &model, "--data", &data, "-o", &at("x.safetensors"), "--targets", "q,v"]).good();
    assert!(
        text.starts_with("loss ") && text.contains("over 6 targets of 8 tokens") && text.contains("memory "),
        "{text}"
    );
}

#[test]
fn captures_and_an_adapters_own_factors() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).display().to_string();
    lora::builder(32).save(at("adapter.gguf")).expect("room");
    let (captures, out) = (at("captures.safetensors"), at("grads.safetensors"));
    let names = format!("layer_out,grad.layer_out,grad.embed:{captures}");
    let words =
        ["gradients", &at("tiny.gguf"), "--data", "-", "-o", &out, "--init", &at("adapter.gguf"), "--capture", &names];
    piped(&words, DATA).good();
    let got = tensors(Path::new(&captures));
    for name in ["blk.0.layer_out", "grad.blk.0.layer_out", "grad.embed"] {
        let (_, shape, values) =
            got.iter().find(|(found, ..)| found == name).unwrap_or_else(|| panic!("{name} in {captures}"));
        assert!(shape[0] == 8 && values.iter().any(|v| *v != 0.0), "{name} {shape:?}");
    }
    assert!(!tensors(Path::new(&out)).is_empty());
}

#[test]
fn what_cannot_be_computed_is_one_line_with_the_way_out() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("bad.jsonl"), "{\"ids\": [5, 6]}\n{\"ids\": [5, \"x\"]}\n").expect("room");
    std::fs::write(at("far.jsonl"), "{\"ids\": [999999, 5]}\n").expect("room");
    std::fs::write(at("empty.jsonl"), "\n").expect("room");
    let (model, out) = (at("tiny.gguf"), at("grads.safetensors"));
    let cases: [(&[&str], i32, &str); 8] = [
        (&["--data", &at("bad.jsonl")], 1, "bad.jsonl, line 2: \"x\" is no token id"),
        (&["--data", &at("far.jsonl")], 1, "line 1: the id 999999 is outside the vocabulary of"),
        (&["--data", &at("empty.jsonl")], 1, "empty.jsonl"),
        (&["--data", &at("none.jsonl")], 1, "none.jsonl"),
        (&["--data", &at("facts.jsonl"), "--micro", "4"], 1, "document 0 has 5 tokens, a step has room for 4"),
        (&["--data", &at("facts.jsonl"), "--targets", "qq"], 2, "none of all, attn, mlp"),
        (&["--data", &at("facts.jsonl"), "--targets", "blk.9.*"], 1, "the model has no weight blk.9.*"),
        (
            &["--data", &at("facts.jsonl"), "--capture", &format!("nothing:{}", at("c"))],
            1,
            "no nothing can be captured: the model names",
        ),
    ];
    for (more, code, said) in cases {
        let words = [&["gradients", &model, "-o", &out, "--device", "cpu"], more].concat();
        let run = run(&words);
        assert_eq!((run.code, run.out.as_str()), (code, ""), "{more:?}: {}", run.err);
        assert!(
            run.err.contains(said) && (code == 2 || run.err.trim_end().lines().count() == 1),
            "{more:?}: {}",
            run.err
        );
        assert!(!Path::new(&out).exists(), "{more:?} wrote a file");
    }
    #[cfg(target_os = "linux")]
    {
        let full = run(&["gradients", &model, "--data", &at("facts.jsonl"), "-o", "/dev/full", "--device", "cpu"]);
        assert!(full.code == 1 && full.err.starts_with("weft: /dev/full: cannot write: No space left"), "{}", full.err);
    }
    let into = run(&["gradients", &model, "--data", &at("facts.jsonl"), "-o", &at(".")]);
    assert!(into.code == 1 && into.err.contains("is a directory; name a file"), "{}", into.err);
}
