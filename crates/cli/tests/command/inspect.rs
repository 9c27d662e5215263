//! `weft inspect` and `weft devices`.

use crate::run;
use crate::tiny::{self, Model};
use gguf::{GgmlType, Gguf, MetaValue};

#[test]
fn the_default_model_is_shown_with_what_it_needs() {
    let text = run(&["inspect"]).good();
    for part in [
        "general.architecture = \"qwen3\"",
        "token_embd.weight",
        "68 tensors",
        "memory on CPU",
        "f16 KV cache of 1024 positions",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() < 200), "a value was not cut");
}

#[test]
fn json_holds_metadata_tensors_and_memory() {
    let model = Model::new(&tiny::builder(0.1));
    let json = run(&["inspect", model.path(), "--ctx", "100", "--kv", "f32", "--json"]).json();
    assert_eq!(json["metadata"]["qwen3.block_count"], 2);
    assert_eq!(json["metadata"]["tokenizer.ggml.tokens"]["length"], tiny::VOCABULARY);
    assert_eq!(json["tensors"].as_array().unwrap().len(), 24);
    // Two layers, keys and values, 100 positions of 16 f32 each; plus the token ids.
    assert_eq!(json["memory"]["kv_bytes"], 2 * 2 * 100 * 16 * 4 + 100 * 4);
    assert_eq!(json["memory"]["context"], 100);
}

/// Templates that no engine reads: broken, and too deep to parse.
fn broken_templates() -> [(String, &'static str); 3] {
    let deep = format!("{{{{ {}1 }}}}", "not ".repeat(200_000));
    [("{% if %}".to_string(), "line 1"), (deep, "64 nested"), ("x".repeat(2 << 20), "1 MiB of text")]
}

#[test]
fn a_broken_template_keeps_no_file_from_raw_text_and_inspect_says_what_is_wrong() {
    for (template, reason) in broken_templates() {
        let model = Model::new(&tiny::builder(0.1).set("tokenizer.chat_template", template));
        let text = run(&["inspect", model.path()]).good();
        assert!(
            text.lines().any(|line| line.starts_with("chat template: ") && line.contains(reason)),
            "{reason}: {text}"
        );
        let json = run(&["inspect", model.path(), "--json"]).json();
        assert!(json["chat_template_error"].as_str().unwrap().contains(reason));
        assert!(run(&["list", model.folder.path().to_str().unwrap()]).good().contains("tiny"));
        run(&["run", model.path(), "--raw", "-p", "x", "-n", "1", "--device", "cpu"]).good();
        run(&["logits", model.path(), "--device", "cpu", "--tokens", "1", "-o", &model.beside("x.npy")]).good();
        run(&["bench", model.path(), "--device", "cpu", "-p", "4", "-n", "2", "-r", "1"]).good();
        let line = run(&["run", model.path(), "-p", "x", "-n", "1", "--device", "cpu"]).failed(1);
        assert!(line.contains(reason), "{line}");
    }
    let model = Model::new(&tiny::builder(0.1).set("tokenizer.chat_template", "{{ messages[0].content }}"));
    assert!(!run(&["inspect", model.path()]).good().contains("chat template:"));
}

#[test]
fn chat_templates_with_names_are_listed() {
    let file = tiny::builder(0.1)
        .set("tokenizer.chat_template.tool_use", "{{ tools }}")
        .set("tokenizer.chat_template.rag", "r");
    let model = Model::new(&file);
    assert!(run(&["inspect", model.path()]).good().contains("other chat templates: tool_use, rag"));
    assert_eq!(
        run(&["inspect", model.path(), "--json"]).json()["chat_templates"],
        serde_json::json!(["tool_use", "rag"])
    );
    let asked = |name| run(&["run", model.path(), "--chat-template", name, "-p", "x", "-n", "1", "--device", "cpu"]);
    asked("rag").good();
    assert!(asked("x").failed(1).contains("no chat template is named x; the file has rag, tool_use"));
    assert_eq!(
        run(&["inspect", Model::new(&tiny::builder(0.1)).path(), "--json"]).json()["chat_templates"],
        serde_json::json!([])
    );
}

#[test]
fn assumptions_about_a_file_are_notes_of_inspect_and_of_loading() {
    let file = tiny::builder(0.1).remove("tokenizer.ggml.pre");
    let file = file.set("qwen3.rope.scaling.type", "yarn").set("qwen3.rope.scaling.factor", 4.0_f32);
    let model = Model::new(&file.set("qwen3.context_length", 100_u32));
    let text = run(&["inspect", model.path(), "--ctx", "400"]).good();
    let json = run(&["inspect", model.path(), "--json"]).json();
    let loaded = run(&["run", model.path(), "-p", "x", "-n", "1", "--device", "cpu", "--ctx", "400"]);
    assert_eq!((loaded.code, json["notes"].as_array().unwrap().len()), (0, 2), "{}", loaded.err);
    for note in ["tokenizer.ggml.pre is missing", "the context length is 400: qwen3.context_length is 100"] {
        assert!(text.lines().any(|line| line.starts_with("note: ") && line.contains(note)), "{text}");
        assert!(json["notes"].to_string().contains(note) && loaded.err.contains(note), "{json} {}", loaded.err);
    }
    run(&["inspect", model.path(), "--ctx", "401"]).failed(1);
    let sound = Model::new(&tiny::builder(0.1));
    assert!(!run(&["inspect", sound.path()]).good().contains("note: "));
}

#[test]
fn an_impossible_id_is_told_by_every_command() {
    let ids = [
        ("eos_token_id", MetaValue::from(-1_i32)),
        ("bos_token_id", 9999_u32.into()),
        ("eot_token_id", "<end>".into()),
    ];
    for (key, value) in ids {
        let key = format!("tokenizer.ggml.{key}");
        let model = Model::new(&tiny::builder(0.1).set(key.as_str(), value.clone()));
        let (path, folder) = (model.path(), model.folder.path().to_str().unwrap());
        let (text, out) = (model.beside("text.jsonl"), model.beside("out"));
        std::fs::write(&text, r#"{"ids": [97, 98, 99]}"#).unwrap();
        for words in [
            &["run", path, "-p", "x", "--device", "cpu"][..],
            &["run", path, "--raw", "-p", "x", "--device", "cpu"],
            &["tokenize", path, "ab"],
            &["logits", path, "--tokens", "1", "-o", &out, "--device", "cpu"],
            &["perplexity", path, &text, "--device", "cpu"],
            &["bench", path, "--device", "cpu", "-p", "4", "-n", "2", "-r", "1"],
            &["gradients", path, "--data", &text, "-o", &out, "--device", "cpu"],
            &["train", path, "--data", &text, "-o", &out, "--device", "cpu"],
            &["merge", path, &text, "-o", &out],
            &["doctor", path, "--device", "cpu"],
        ] {
            let line = run(words).failed(1);
            assert!(line.contains(&key), "{words:?} with {value:?}: {line}");
        }
        for words in [&["inspect", path][..], &["list", folder]] {
            let text = run(words).good();
            assert!(text.contains(&key), "{words:?} with {value:?}: {text}");
        }
    }
}

#[test]
fn tokens_of_turns_with_other_types_are_noted_by_every_command_that_reads_text() {
    let mut kinds = vec![1_i32; tiny::VOCABULARY];
    kinds.push(1);
    let file = Gguf::from_bytes(tiny::builder(0.1).to_bytes().unwrap()).unwrap();
    let mut tokens: Vec<String> = file.get("tokenizer.ggml.tokens").unwrap();
    tokens.push("<|im_end|>".to_string());
    let file = tiny::builder(0.1).set("tokenizer.ggml.tokens", tokens).set("tokenizer.ggml.token_type", kinds);
    let model = Model::new(&file);
    let note = "does not make control tokens of <|im_end|>";
    let told = run(&["tokenize", model.path(), "<|im_end|>"]);
    assert!(told.out.contains("257") && told.err.contains(note), "{} {}", told.out, told.err);
    assert!(run(&["inspect", model.path()]).good().contains(note));
}

#[test]
fn plans_list_every_dispatch_of_both_steps() {
    let text = run(&["inspect", "--plan"]).good();
    assert!(text.contains("decode step, for ") && text.contains("prefill step"), "{text}");
    assert_eq!(text.matches(" dispatches, ").count(), 2, "{text}");
    let json = run(&["inspect", "--plan", "--json"]).json();
    assert!(json["plan"]["decode"].as_str().unwrap().contains("attention"));
}

#[test]
fn a_context_that_the_model_lacks_is_refused() {
    assert!(run(&["inspect", "--json", "--ctx", "5000"]).failed(1).contains("1024"));
}

#[test]
fn verify_passes_whole_files_and_names_damaged_tensors() {
    let good = Model::new(&tiny::builder(0.1));
    assert!(run(&["inspect", good.path(), "--verify"]).good().contains("verified: all 24 tensors"));
    let nan = [f32::NAN, 1.0, f32::INFINITY, f32::NAN].map(f32::to_le_bytes).concat();
    let bad = Model::new(&tiny::builder(0.1).tensor("extra.weight", &[4], GgmlType::F32, nan).tensor_of_number(
        "odd.weight",
        &[4],
        99,
        vec![0; 16],
    ));
    let run = run(&["inspect", bad.path(), "--verify"]);
    assert_eq!(run.code, 1);
    assert!(
        run.out.contains("extra.weight has 2 NaN and 1 infinite values of 4") && run.out.contains("odd.weight"),
        "{}",
        run.out
    );
    assert!(run.err.contains("extra.weight") && run.err.matches('\n').count() == 1, "{}", run.err);
}

#[test]
fn a_file_of_another_architecture_is_shown_but_not_verified() {
    let model = Model::new(&tiny::builder(0.1).set("general.architecture", "mamba"));
    assert!(run(&["inspect", model.path()]).good().contains("cannot run"));
    assert_eq!(run(&["inspect", model.path(), "--verify"]).code, 1);
    assert!(
        run(&["inspect", model.path(), "--json"]).json()["memory"]["unsupported"].as_str().unwrap().contains("mamba")
    );
}

#[test]
fn a_profile_on_the_cpu_is_refused_before_anything_is_measured() {
    let refused = run(&["bench", "--profile", "-p", "4", "-n", "0", "-r", "1", "--device", "cpu"]);
    assert_eq!(refused.out, "");
    let line = refused.failed(1);
    assert!(line.contains("needs a GPU with timestamps") && line.contains("`weft devices`"), "{line}");
}

/// In a pipe there is no line of progress, and a software driver takes seconds.
#[test]
fn devices_in_a_pipe_say_what_takes_long() {
    let measured = run(&["devices"]);
    assert!(
        measured.err.contains("measuring every adapter") && measured.err.contains("--no-measure"),
        "{}",
        measured.err
    );
    assert_eq!(run(&["devices", "--no-measure"]).err, "");
}

#[test]
fn devices_are_listed_with_features_and_limits() {
    let json = run(&["devices", "--json"]).json();
    let adapters = json.as_array().unwrap();
    assert!(!adapters.is_empty(), "these tests need a Vulkan driver, a software one will do");
    for adapter in adapters {
        assert!(
            adapter["features"].is_array() && adapter["limits"]["max_buffer_size"].as_u64().unwrap() > 0,
            "{adapter}"
        );
    }
    assert!(adapters[0]["measured"]["read_gb_per_second"].as_f64().unwrap() > 0.0);
    let listed = run(&["devices", "--no-measure", "--limits"]).good();
    assert!(listed.contains(adapters[0]["name"].as_str().unwrap()) && listed.contains("max_buffer_size"), "{listed}");
}

#[test]
fn features_that_are_left_out_are_gone_and_unknown_ones_are_named() {
    let features = |words: &[&str]| {
        run(&[&["devices", "--json", "--no-measure"], words].concat()).json()[0]["features"].to_string()
    };
    assert!(features(&[]).contains("\"subgroup\""), "the software driver has subgroups");
    assert!(!features(&["--without", "coop,subgroups"]).contains("subgroup"));
    assert!(!features(&["--without", "f16"]).contains("f16"));
    let refused = run(&["devices", "--without", "coop,tensor"]);
    assert!(refused.code == 2 && refused.err.contains("\"tensor\" is not coop, subgroups or f16"), "{}", refused.err);
    let answer = run(&[
        "run",
        "--device",
        "gpu",
        "--without",
        "subgroups",
        "--temp",
        "0",
        "-n",
        "4",
        "-p",
        "Where does Wren live?",
    ]);
    assert!(answer.code == 0 && answer.out.starts_with("Wren lives"), "{}{}", answer.out, answer.err);
}

#[test]
fn what_is_measured_is_kept_for_the_next_run_and_damage_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let weft = |words: &[&str]| -> crate::Run {
        crate::weft(words).env("WEFT_CACHE_DIR", folder.path()).env("WEFT_DEBUG", "1").output().unwrap().into()
    };
    let kept = || -> Vec<std::path::PathBuf> {
        let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("rates-")).collect()
    };
    weft(&["devices", "--no-measure"]);
    assert!(kept().is_empty());
    assert_eq!(weft(&["devices"]).code, 0);
    let files = kept();
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(text.starts_with("weft ") && text.ends_with(" end\n") && text.lines().count() == 2, "{text}");
    for damaged in ["", "weft", &text[..text.len() - 1]] {
        std::fs::write(&files[0], damaged).unwrap();
        let run = weft(&["run", "-p", "What is 3 + 4?"]);
        assert_eq!((run.code, run.out.as_str()), (0, "3 + 4 = 7.\n"));
        assert_eq!(weft(&["devices"]).code, 0);
        assert!(std::fs::read_to_string(&files[0]).unwrap().ends_with(" end\n"), "{damaged:?} stays");
    }
}
