//! `weft run`: the default model and a tiny one, on the CPU.

use crate::tiny::{self, Model};
use crate::{piped, run};

const QUESTION: &str = "Where does Wren live?";
const ANSWER: &str = "Wren lives in Windle.\n";

#[test]
fn the_default_model_answers_and_says_nothing_else() {
    assert_eq!(run(&["run", "--device", "cpu", "-p", QUESTION]).good(), ANSWER);
}

#[test]
fn the_prompt_may_come_through_a_pipe() {
    assert_eq!(piped(&["run", "--device", "cpu"], &format!("{QUESTION}\n")).good(), ANSWER);
    assert_eq!(piped(&["run", "--device", "cpu", "-p", "-"], QUESTION).good(), ANSWER);
    assert!(piped(&["run", "--device", "cpu"], " \n").failed(2).contains("empty"));
}

#[test]
fn a_missing_model_is_told_before_an_empty_prompt_and_an_empty_prompt_before_the_weights() {
    let missing = piped(&["run", "nowhere.gguf", "--device", "cpu"], "").failed(1);
    assert!(missing.contains("nowhere.gguf: no such file"), "{missing}");
    let model = Model::new(&tiny::builder(f32::NAN).set("general.architecture", "weave"));
    let empty = piped(&["run", model.path(), "--device", "cpu"], "").failed(2);
    assert!(empty.contains("the prompt is empty"), "{empty}");
}

#[test]
fn a_probability_out_of_bounds_is_told_in_few_words() {
    let refused = run(&["run", "-p", QUESTION, "--top-p", "2"]);
    assert!(refused.code == 2 && refused.err.contains("must be above 0 and at most 1"), "{}", refused.err);
    assert!(!refused.err.contains("00000"), "{}", refused.err);
}

#[test]
fn the_software_gpu_answers_too_and_is_not_called_a_gpu() {
    let run = run(&["run", "--device", "gpu", "-p", QUESTION]);
    assert_eq!((run.code, run.out.as_str()), (0, ANSWER), "{}", run.err);
    let software =
        run.err.lines().any(|l| l.starts_with("weft: software adapter ") && l.ends_with("; this is not a GPU"));
    assert!(software != run.err.is_empty(), "{}", run.err);
}

#[test]
fn auto_never_takes_software_for_a_gpu() {
    let json = run(&["run", "-p", QUESTION, "--json"]).json();
    let devices = run(&["devices", "--json", "--no-measure"]).json();
    let software = devices.as_array().unwrap().iter().filter(|d| d["class"] == "software");
    assert!(software.map(|d| &d["name"]).all(|name| *name != json["device"]), "{json}");
}

#[test]
fn json_holds_text_tokens_finish_and_timings() {
    let run = run(&["run", "--device", "cpu", "-p", QUESTION, "--json"]);
    assert_eq!(run.err, "");
    let json = run.json();
    assert_eq!((json["text"].as_str(), json["finish"].as_str()), (Some(ANSWER.trim_end()), Some("end")));
    let tokens = json["tokens"].as_array().unwrap();
    assert_eq!(json["log_probs"].as_array().unwrap().len(), tokens.len());
    assert!(json["timings"]["decode_tokens_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!((json["executor"].as_str(), json["kv"].as_str()), (Some("cpu"), Some("f16")));
}

#[test]
fn stats_go_to_stderr() {
    let run = run(&["run", "--device", "cpu", "-p", QUESTION, "--stats"]);
    assert_eq!((run.code, run.out.as_str()), (0, ANSWER));
    assert!(run.err.contains("tokens/s") && run.err.contains("greedy"), "{}", run.err);
}

#[test]
fn limits_and_stop_strings_end_an_answer() {
    let answer = |words: &[&str]| run(&[&["run", "--device", "cpu", "-p", QUESTION, "--json"], words].concat()).json();
    let short = answer(&["-n", "2"]);
    assert_eq!((short["text"].as_str(), short["finish"].as_str()), (Some("Wren lives"), Some("length")));
    let stopped = answer(&["--stop", " in Win"]);
    assert_eq!((stopped["text"].as_str(), stopped["finish"].as_str()), (Some("Wren lives"), Some("stop")));
    assert_eq!(stopped["stop"], " in Win");
}

#[test]
fn a_stop_that_names_a_control_token_ends_the_answer_with_the_template_and_raw() {
    let raw = format!("<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n");
    for words in [vec!["-p", QUESTION], vec!["--raw", "-p", &raw]] {
        let answer = |more: &[&str]| run(&[&["run", "--device", "cpu", "--json"], &words[..], more].concat()).json();
        let (ended, stopped) = (answer(&[]), answer(&["--stop", "never said", "--stop", "<|im_end|>"]));
        assert_eq!((ended["finish"].as_str(), ended["stop"].as_str()), (Some("end"), None));
        assert_eq!((stopped["finish"].as_str(), stopped["stop"].as_str()), (Some("stop"), Some("<|im_end|>")));
        assert_eq!((&stopped["tokens"], &stopped["text"]), (&ended["tokens"], &ended["text"]));
        assert_eq!(answer(&["--stop", "<|im_end|>\n"])["finish"], "end", "a name inside a longer stop is text");
    }
}

/// A thousand sequences of a million positions do not fit. The error comes before any weight is
/// read.
#[test]
fn a_context_that_does_not_fit_is_refused_with_numbers_and_options() {
    let model = Model::new(&tiny::builder(0.5));
    let words =
        ["bench", model.path(), "-p", "0", "-n", "8", "-d", "1000000", "-b", "1024", "--device", "cpu", "--kv", "f32"];
    let told = run(&words).failed(1);
    assert!(["GB", "KV cache of 1000008 positions", "--ctx", "--kv"].iter().all(|part| told.contains(part)), "{told}");
}

#[test]
fn a_full_context_is_told() {
    let full = run(&["run", "--device", "cpu", "-p", QUESTION, "--ctx", "15"]);
    assert_eq!(full.code, 0);
    assert!(ANSWER.starts_with(full.out.trim_end()) && full.err.contains("--ctx"), "{} {}", full.out, full.err);
    assert!(run(&["run", "--device", "cpu", "-p", QUESTION, "--ctx", "3"]).failed(1).contains("--ctx"));
    assert!(run(&["run", "--device", "cpu", "-p", QUESTION, "--ctx", "5000"]).failed(1).contains("1024"));
}

#[test]
fn a_seed_makes_the_text_again_and_another_does_not() {
    let model = Model::new(&tiny::builder(0.5));
    let with = |seed: &str| {
        run(&["run", model.path(), "--device", "cpu", "-p", "ab", "-n", "40", "--temp", "2", "--seed", seed, "--json"])
            .json()
    };
    let (one, again, other) = (with("1"), with("1"), with("2"));
    assert_eq!(one["tokens"], again["tokens"]);
    assert_ne!(one["tokens"], other["tokens"]);
    assert_eq!(one["seed"], 1);
}

#[test]
fn every_cache_type_and_a_file_that_is_read_run() {
    let model = Model::new(&tiny::builder(0.5));
    let with = |words: &[&str]| {
        run(&[&["run", model.path(), "--device", "cpu", "-p", "ab", "-n", "5", "--temp", "0"], words].concat()).good()
    };
    let plain = with(&[]);
    assert_eq!(with(&["--no-mmap"]), plain);
    assert_eq!(with(&["--mmap"]), plain);
    assert_eq!(with(&["--kv", "f32"]), plain);
    with(&["--kv", "q8_0"]);
}

#[test]
fn raw_continues_the_prompt_itself() {
    let json = run(&["run", "--device", "cpu", "--raw", "-p", "The town of", "-n", "3", "--json"]).json();
    let tokens = run(&["tokenize", "--json", "The town of"]).json();
    assert_eq!(json["prompt_tokens"], tokens["count"]);
}

#[test]
fn damaged_weights_stop_the_answer_in_one_line() {
    let broken = tiny::builder(f32::INFINITY);
    let model = Model::new(&broken);
    assert!(run(&["run", model.path(), "--device", "cpu", "-p", "ab"]).failed(1).contains("not finite"));
}

#[test]
fn the_model_in_the_binary_has_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let answer = run(&["run", "-p", "Where does Wren live?", "--device", "cpu"]).good();
    assert_eq!(run(&["run", "default", "Where does Wren live?", "--device", "cpu", "-t", "1"]).good(), answer);
    std::fs::write(at("prompt.txt"), "Where does Wren live?\n").unwrap();
    assert_eq!(run(&["run", "-f", &at("prompt.txt"), "--device", "cpu"]).good(), answer);
    let sum = piped(&["run", "default", "--device", "cpu", "+", "4?"], "What is 3").good();
    assert!(sum.contains("7"), "the pipe comes before the words: {sum}");
    // An adapter is merged into it by its name, and the result is a file.
    std::fs::write(at("facts.jsonl"), "{\"prompt\": \"Who?\", \"completion\": \"Oda.\"}\n").unwrap();
    let trained = run(&["train", "default", "--data", &at("facts.jsonl"), "-o", &at("facts"), "--steps", "1"]);
    assert_eq!(trained.code, 0, "{}", trained.err);
    run(&["merge", "default", &at("facts"), "-o", &at("m.gguf")]).good();
    assert_eq!(
        run(&["run", &at("m.gguf"), "-p", "Where does Wren live?", "--device", "cpu", "--temp", "0"]).good(),
        answer
    );
    // A file of this name comes first.
    std::fs::write(at("default"), "no model").unwrap();
    let file = crate::weft(&["run", "default", "-p", "x"]).current_dir(folder.path()).output().unwrap();
    assert!(!file.status.success());
    for command in
        [&["inspect", "default"][..], &["tokenize", "default", "a"], &["perplexity", "default", &at("prompt.txt")]]
    {
        assert_eq!(run(command).code, 0, "{command:?}");
    }
}
