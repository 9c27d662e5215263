//! `weft train`: what it makes, how it goes on, and what it refuses.

use crate::tiny::{self, Model};
use crate::{Run, piped, run, weft};
use serde_json::Value;
use std::path::Path;

/// Twelve examples, each as text of bytes that the tiny model knows.
fn data() -> String {
    (0..12).map(|n| format!("{{\"text\": \"the number {n} is followed by {}\"}}\n", n + 1)).collect()
}

/// A folder with a small model and examples.
pub fn model() -> Model {
    let model = Model::new(&tiny::builder(0.3));
    std::fs::write(model.beside("facts.jsonl"), data()).expect("room");
    model
}

/// Trains the tiny model on the CPU, with more flags.
fn train(model: &Model, output: &str, more: &[&str]) -> Run {
    run(&words(model, output, "cpu", more))
}

fn words<'a>(model: &'a Model, output: &'a str, device: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let data: &str = Box::leak(model.beside("facts.jsonl").into_boxed_str());
    let words = [
        "train",
        model.path(),
        "--data",
        data,
        "-o",
        output,
        "--device",
        device,
        "--batch",
        "4",
        "--rank",
        "4",
        "--json",
    ];
    [&words[..], more].concat()
}

/// The JSON objects that a run printed.
pub fn objects(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn bytes(folder: &str, name: &str) -> Vec<u8> {
    std::fs::read(Path::new(folder).join(name)).unwrap_or_else(|error| panic!("{folder}/{name}: {error}"))
}

#[test]
fn a_run_makes_an_adapter_a_log_and_a_curve() {
    let model = model();
    let out = model.beside("out");
    let held = ["--val", "0.25", "--epochs", "4", "--lr", "5e-3", "--dropout", "0.05"];
    let lines = objects(&train(&model, &out, &held).good());
    let (last, steps) = lines.split_last().expect("lines");
    assert_eq!((last["done"].as_bool(), last["steps"].as_u64(), steps.len()), (Some(true), Some(12), 12));
    let loss = |n: usize| steps[n]["loss"].as_f64().expect("a loss");
    assert!(loss(11) < loss(0) - 0.3, "{} {}", loss(0), loss(11));
    assert!(steps.iter().filter(|step| step["validation"].is_number()).count() >= 6);
    let log = String::from_utf8(bytes(&out, "log.jsonl")).expect("text");
    assert_eq!(objects(&log), steps, "the log has the printed numbers");
    assert!(String::from_utf8(bytes(&out, "loss.svg")).expect("text").contains("</svg>"));
    // The adapter changes what the model says, in either form alike.
    let logits = |more: &[&str]| {
        let npy = model.beside("logits.npy");
        run(&[&["logits", model.path(), "--tokens", "5,6,7", "-o", &npy, "--device", "cpu"], more].concat()).good();
        std::fs::read(npy).expect("logits")
    };
    let (plain, peft, ggml) =
        (logits(&[]), logits(&["--lora", &out]), logits(&["--lora", &format!("{out}/adapter.gguf")]));
    assert!(peft == ggml && peft != plain);
}

#[test]
fn a_folder_that_holds_a_run_is_refused_and_a_run_goes_on() {
    let model = model();
    let (whole, parts) = (model.beside("whole"), model.beside("parts"));
    let steps = ["--steps", "7", "--schedule", "constant"];
    train(&model, &whole, &steps).good();
    train(&model, &parts, &[&steps[..], &["--save-every", "1", "--keep", "9"]].concat()).good();
    let refused = train(&model, &parts, &steps).failed(1);
    assert!(refused.contains("the folder holds a run (checkpoint-00000007.safetensors and"), "{refused}");
    // As after a kill behind step 3.
    for n in 4..8 {
        std::fs::remove_file(format!("{parts}/checkpoint-{n:08}.safetensors")).expect("a checkpoint");
    }
    let on = train(&model, &parts, &[&steps[..], &["--resume"]].concat());
    assert_eq!((on.code, on.err.as_str()), (0, ""));
    assert_eq!(objects(&on.out).first().map(|line| line["step"].as_u64()), Some(Some(4)));
    for name in ["adapter_model.safetensors", "log.jsonl", "adapter.gguf"] {
        assert!(bytes(&whole, name) == bytes(&parts, name), "{name} differs");
    }
    // Other settings, and other data, are named.
    for (more, said) in [
        (&["--seed", "5"][..], "the run cannot go on: --seed was 0, now 5; give what it had, or"),
        // The shapes of tensors follow from these, and are not named.
        (&["--rank", "2"], ": --rank was 4, now 2; give"),
        (&["--targets", "q,down"], ": --targets was all, now q,down; give"),
        (&["--alpha", "7", "--lr", "0.25"], ": --alpha was 32, now 7; --lr was 0.002, now 0.25; give"),
        (&["--mean", "examples", "--clip", "0"], ": --clip was 1, now 0; --mean was tokens, now examples; give"),
    ] {
        let mut words = words(&model, &parts, "cpu", &[&steps[..], &["--resume"]].concat());
        if let Some(at) = words.iter().position(|word| *word == more[0]) {
            words.drain(at..at + 2);
        }
        let other = run(&[&words[..], more].concat()).failed(1);
        assert!(other.contains(said), "{other}");
    }
    let full = train_full(&model, &parts, &["--resume", "--steps", "7", "--schedule", "constant"]).failed(1);
    assert!(full.contains("it trains low-rank factors, now all weights (--full); "), "{full}");
    std::fs::write(model.beside("facts.jsonl"), data() + "{\"text\": \"one more\"}\n").expect("room");
    let other = train(&model, &parts, &[&steps[..], &["--resume"]].concat()).failed(1);
    assert!(other.contains("facts.jsonl has changed since; "), "{other}");
    let again = train(&model, &parts, &[&steps[..], &["--force"]].concat()).good();
    assert_eq!(objects(&again).len(), 8);
}

#[test]
fn one_other_byte_anywhere_in_the_model_is_refused() {
    let (model, steps) = (model(), ["--steps", "4", "--save-every", "1"]);
    let out = model.beside("out");
    train(&model, &out, &steps).good();
    let file = std::fs::read(model.path()).expect("a model");
    let resume = [&steps[..], &["--resume"]].concat();
    let tensors = gguf::Gguf::open(model.path()).expect("a model").tensors().to_vec();
    let largest = tensors.iter().max_by_key(|tensor| tensor.bytes).expect("a tensor");
    assert!(largest.bytes > 4096, "samples have only a part of it");
    for part in [7, 16, 31] {
        let mut other = file.clone();
        other[(largest.offset + largest.bytes * part / 32 - 5) as usize] ^= 1;
        std::fs::write(model.path(), &other).expect("room");
        let refused = train(&model, &out, &resume).failed(1);
        assert!(refused.contains("tiny.gguf has changed since, or is another model; "), "{part}: {refused}");
    }
    std::fs::write(model.path(), &file).expect("room");
    assert_eq!(train(&model, &out, &resume).code, 0);
}

#[test]
fn a_checkpoint_of_version_1_goes_on_and_says_what_was_not_compared() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (model, folder) =
        (here.join("../../tests/goldens/qwen3tied/qwen3tied-F16.gguf"), tempfile::tempdir().expect("a folder"));
    let (data, checkpoint) = (here.join("tests/version1/data.jsonl"), "checkpoint-00000003.safetensors");
    std::fs::copy(here.join("tests/version1").join(checkpoint), folder.path().join(checkpoint)).expect("room");
    let [model, data, output] = [model.as_path(), &data, folder.path()].map(|path| path.to_str().expect("text"));
    let words = [
        "train",
        model,
        "--data",
        data,
        "-o",
        output,
        "--device",
        "cpu",
        "--rank",
        "1",
        "--targets",
        "blk.0.attn_q.weight",
    ];
    let more = ["--steps", "6", "--batch", "2", "--resume", "--json"];
    let other = run(&[&words[..], &more, &["--lr", "1"]].concat()).failed(1);
    assert!(other.contains("the run cannot go on: settings of the optimizer or of its steps are others; "), "{other}");
    // The rate and the decay that such runs had by default then.
    let on = run(&[&words[..], &more, &["--lr", "4e-3", "--decay", "0.01"]].concat());
    assert_eq!(on.code, 0, "{}", on.err);
    assert!(on.err.contains("only samples of the model's weights were compared"), "{}", on.err);
    assert_eq!(objects(&on.out).first().map(|line| line["step"].as_u64()), Some(Some(4)));
}

#[test]
fn stdin_is_learnt_once_and_in_order() {
    let model = model();
    let out = model.beside("out");
    let of = |output: &'static str| ["train", "--data", "-", "--device", "cpu", "--batch", "4", "--json", "-o", output];
    let streamed = model.beside("streamed");
    let words = [
        "train",
        model.path(),
        "--data",
        "-",
        "-o",
        &streamed,
        "--device",
        "cpu",
        "--batch",
        "4",
        "--rank",
        "4",
        "--json",
    ];
    let lines = objects(&piped(&words, &data()).good());
    assert_eq!(lines.len(), 4);
    let same = ["--epochs", "1", "--no-shuffle", "--schedule", "constant", "--warmup", "0", "--decay", "0.01"];
    train(&model, &out, &same).good();
    assert!(bytes(&out, "adapter_model.safetensors") == bytes(&streamed, "adapter_model.safetensors"));
    let nothing = model.beside("nothing");
    let words = ["train", model.path(), "--data", "-", "-o", &nothing, "--device", "cpu", "--json"];
    for (input, said) in [("", "stdin: no example"), ("\n", "stdin, line 1: nothing to learn")] {
        let nothing = piped(&words, input).failed(1);
        assert!(nothing.contains(said), "{nothing}");
    }
    for (more, said) in [
        ("--resume", "--resume needs"),
        ("--dry-run", "--dry-run needs"),
        ("--val=0.1", "--val takes a share"),
        ("--rehearse=x", "--rehearse needs"),
        ("--patience=3", "--patience with --data - needs --val"),
    ] {
        let refused = run(&[&of("x")[..], &[more]].concat()).failed(2);
        assert!(refused.contains(said), "{refused}");
    }
}

/// The logits of a model for three tokens, from a run on the CPU.
fn logits(model: &Model, of: &str, more: &[&str]) -> Vec<u8> {
    let npy = model.beside("logits.npy");
    run(&[&["logits", of, "--tokens", "5,6,7", "-o", &npy, "--device", "cpu"], more].concat()).good();
    std::fs::read(npy).expect("logits")
}

/// Trains all weights of the tiny model on the CPU.
fn train_full(model: &Model, output: &str, more: &[&str]) -> Run {
    let data = model.beside("facts.jsonl");
    let words =
        ["train", model.path(), "--data", &data, "-o", output, "--device", "cpu", "--batch", "4", "--full", "--json"];
    run(&[&words[..], more].concat())
}

#[test]
fn all_weights_are_trained_and_become_a_model() {
    let model = model();
    let [whole, parts, fresh] = ["whole", "parts", "fresh"].map(|name| model.beside(name));
    let steps =
        ["--steps", "6", "--schedule", "constant", "--lr", "3e-3", "--type", "F32", "--save-every", "1", "--keep", "9"];
    let lines = objects(&train_full(&model, &whole, &steps).good());
    let loss = |line: &Value| line["loss"].as_f64().expect("a loss");
    assert!(loss(&lines[5]) < loss(&lines[0]) - 0.3, "{lines:?}");
    let trained = logits(&model, &format!("{whole}/model.gguf"), &[]);
    assert!(trained != logits(&model, model.path(), &[]));
    // A run that goes on after step 3 makes the same model.
    train_full(&model, &parts, &steps).good();
    for n in 4..7 {
        std::fs::remove_file(format!("{parts}/checkpoint-{n:08}.safetensors")).expect("a checkpoint");
    }
    std::fs::remove_file(format!("{parts}/model.gguf")).expect("a model");
    let on = train_full(&model, &parts, &[&steps[..], &["--resume"]].concat());
    assert_eq!(on.code, 0, "{}", on.err);
    assert!(bytes(&whole, "model.gguf") == bytes(&parts, "model.gguf"));
    // From random weights, every byte is about as likely as another. The file is F16 by default.
    let lines = objects(&train_full(&model, &fresh, &["--from-config", "--steps", "2"]).good());
    let even = (tiny::VOCABULARY as f64).ln();
    assert!((loss(&lines[0]) - even).abs() < 0.5, "{lines:?}");
    let inspected = run(&["inspect", &format!("{fresh}/model.gguf")]).good();
    assert!(inspected.contains("F16") && inspected.contains("blk.1.ffn_down.weight"), "{inspected}");
    assert!(logits(&model, &format!("{fresh}/model.gguf"), &[]) != trained);
    let other = train_full(&model, &whole, &["--resume", "--steps", "6", "--from-config"]).failed(1);
    assert!(other.contains("the run cannot go on: "), "{other}");
}

/// llama.cpp refuses factors of the output matrix of such a model, and ends with those of its
/// embedding.
#[test]
fn factors_of_a_tied_embedding_say_how_llama_cpp_takes_them() {
    let model = model();
    for targets in ["embed", "q,head", "q"] {
        let lines =
            objects(&train(&model, &model.beside("out"), &["--steps", "1", "--targets", targets, "--force"]).good());
        assert_eq!(lines[1]["merge_for_llama_cpp"], targets != "q", "{targets}: {}", lines[1]);
        assert_eq!(lines[1]["output"], model.beside("out"));
    }
}

#[test]
fn a_base_in_four_bits_takes_an_adapter() {
    let model = Model::new(&tiny::of_width(64, 0.3));
    std::fs::write(model.beside("facts.jsonl"), data()).expect("room");
    let [plain, narrow] = ["plain", "narrow"].map(|name| model.beside(name));
    let losses = |output: &str, more: &[&str]| -> Vec<f64> {
        let lines = objects(&train(&model, output, &[&["--steps", "4", "--lr", "5e-3"], more].concat()).good());
        lines.iter().filter_map(|line| line["loss"].as_f64()).collect()
    };
    let (wide, four) = (losses(&plain, &[]), losses(&narrow, &["--base", "nf4"]));
    assert!(wide[0] != four[0] && (wide[0] - four[0]).abs() < 0.5 && four[3] < four[0], "{wide:?} {four:?}");
    assert!(logits(&model, model.path(), &["--lora", &narrow]) != logits(&model, model.path(), &[]));
    std::fs::remove_file(format!("{narrow}/run.json")).expect("its flags");
    let resumed = train(&model, &narrow, &["--steps", "4", "--lr", "5e-3", "--resume"]).failed(1);
    assert!(resumed.contains("the run cannot go on: --base was nf4, now as stored; "), "{resumed}");
    let refused = train(&model, &model.beside("double"), &["--base", "nf4-dq"]).failed(1);
    assert!(refused.contains("blocks of NF4_DQ have 256") && refused.contains("with an NF4 base"), "{refused}");
    let wide = Model::new(&tiny::of_width(256, 0.1));
    std::fs::write(wide.beside("facts.jsonl"), data()).expect("room");
    let first = |output: &str, base: &[&str]| {
        let lines = objects(&train(&wide, &wide.beside(output), &[&["--steps", "1"], base].concat()).good());
        lines[0]["loss"].as_f64().expect("a loss")
    };
    let [plain, four, double] =
        [&[][..], &["--base", "nf4"], &["--base", "nf4-dq"]].map(|base| first(&format!("wide{}", base.concat()), base));
    assert!(
        plain != four && four != double && (four - plain).abs() < 0.5 && (double - four).abs() < 0.1,
        "{plain} {four} {double}"
    );
    // Rows of 32 elements are half a block.
    let tiny = self::model();
    let refused = train(&tiny, &tiny.beside("out"), &["--base", "nf4"]).failed(1);
    assert!(refused.contains("blocks of NF4 have 64") && refused.contains("without an NF4 base"), "{refused}");
}

#[test]
fn gradients_captures_and_traces_of_a_run() {
    let model = model();
    let [out, grads, captures] = ["out", "grads.safetensors", "captures.safetensors"].map(|name| model.beside(name));
    let capture = format!("layer_out,grad.attn_out:{captures}");
    train(&model, &out, &["--steps", "2", "--grads", &grads, "--capture", &capture, "--trace"]).good();
    let names = |path: &str| -> Vec<String> {
        let bytes = std::fs::read(path).expect("a file");
        let file = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
        file.names().iter().map(ToString::to_string).collect()
    };
    assert!(names(&captures).contains(&"grad.blk.1.attn_out".to_string()));
    assert!(names(&grads).iter().any(|name| name.ends_with("layers.1.mlp.up_proj.lora_B.weight")));
    let trace = objects(&String::from_utf8(bytes(&out, "trace.jsonl")).expect("text"));
    for (step, name) in [(1, "layer_out"), (2, "grad.layer_out")] {
        let line = trace
            .iter()
            .find(|line| line["step"] == step && line["layer"] == 1 && line["name"] == name)
            .expect("a line");
        assert!(
            line["norm"].as_f64() > Some(0.0) && line["largest"].as_f64() > Some(0.0) && line["not_finite"] == 0,
            "{line}"
        );
    }
}

#[test]
fn what_cannot_be_trained_is_one_line_with_the_way_out() {
    let model = model();
    let out = model.beside("out");
    std::fs::write(model.beside("bad.jsonl"), "{\"text\": \"a b\"}\n{\"prompt\": 1}\n").expect("room");
    std::fs::write(model.beside("empty.jsonl"), "\n").expect("room");
    let [bad, empty, none] = ["bad.jsonl", "empty.jsonl", "none.jsonl"].map(|name| model.beside(name));
    let cases: [(&str, &[&str], i32, &str); 6] = [
        (&bad, &[], 1, "bad.jsonl, line 2: "),
        (&empty, &[], 1, "empty.jsonl"),
        (&none, &[], 1, "none.jsonl"),
        ("", &["--targets", "qq"], 2, "none of all, attn, mlp"),
        ("", &["--targets", "blk.9.*"], 1, "the model has no weight blk.9.*"),
        ("", &["--micro", "4"], 1, "a step has room for 4"),
    ];
    let facts = model.beside("facts.jsonl");
    for (data, more, code, said) in cases {
        let data = if data.is_empty() { &facts } else { data };
        let words = ["train", model.path(), "--data", data, "-o", &out, "--device", "cpu"];
        let run = run(&[&words[..], more].concat());
        assert_eq!(run.code, code, "{more:?}: {}", run.err);
        assert!(
            run.err.contains(said) && (code == 2 || run.err.trim_end().lines().count() == 1),
            "{more:?}: {}",
            run.err
        );
    }
    // An error names the file once.
    let missing = run(&["train", model.path(), "--data", &none, "-o", &out, "--device", "cpu"]).failed(1);
    assert_eq!(missing.matches("none.jsonl").count(), 1, "{missing}");
    let into = train(&model, &facts, &[]).failed(1);
    assert!(into.contains("facts.jsonl"), "{into}");
}

#[test]
fn what_changes_nothing_is_told_in_a_note() {
    let model = model();
    let note = |name: &str, more: &[&str]| {
        let words = ["train", model.path(), "--data", name, "--dry-run", "--device", "cpu", "--batch", "1"];
        let run = run(&[&words[..], more].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        run.err
    };
    let columns = model.beside("columns.jsonl");
    std::fs::write(&columns, "{\"text\": \"a b\", \"source\": 1}\n{\"text\": \"a b\", \"id\": 2}\n").expect("room");
    let said = note(&columns, &["--steps", "2", "--warmup", "8", "--lr", "1"]);
    assert!(said.contains("these columns of the examples have no effect: id, source\n"), "{said}");
    let warmup =
        "--warmup 8 is more than the 2 steps of the run: the rate ends at 2.50e-1, and does not reach its height";
    assert!(said.contains(warmup), "{said}");
    let said = note(&model.beside("facts.jsonl"), &["--steps", "8", "--warmup", "8"]);
    assert!(!said.contains("warmup") && !said.contains("no effect"), "{said}");
}

#[test]
fn the_loss_of_held_out_examples_is_the_mean_that_steps_have() {
    let model = model();
    let held = model.beside("held.jsonl");
    let lines = "{\"ids\": [5, 6, 7, 8, 9], \"weights\": [0.1, 0.2, 0, 0.1, 0]}\n{\"ids\": [9, 4, 9]}\n{\"ids\": [7, 7, 3, 4], \"weights\": [3, 2, 1, 0]}\n";
    std::fs::write(&held, lines).expect("room");
    for mean in ["tokens", "examples"] {
        let validation = |batch: &str| {
            let out = model.beside("out");
            let more = ["--val", &held, "--batch", batch, "--steps", "1", "--lr", "1e-30", "--mean", mean, "--force"];
            let words = [
                "train",
                model.path(),
                "--data",
                &model.beside("facts.jsonl"),
                "-o",
                &out,
                "--device",
                "cpu",
                "--json",
            ];
            let lines = objects(&run(&[&words[..], &more].concat()).good());
            lines[0]["validation"].as_f64().expect("a loss")
        };
        let [one, all] = ["1", "3"].map(validation);
        assert!((one - all).abs() < 1e-6 * all, "{mean}: {one} {all}");
    }
}

#[cfg(unix)]
mod defaults;
mod ending;
mod killed;
