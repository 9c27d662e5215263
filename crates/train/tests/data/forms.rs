//! Each form of a line: what is learnt of it, and why lines are refused.

use crate::common::{data, documents, gemma3, marked, options, qwen2, refused, stream};
use proptest::collection::vec;
use proptest::prelude::*;
use train::{Counts, Learn, Longer, NO_TARGET};

#[test]
fn a_completion_is_learnt_behind_what_weft_run_renders() {
    let texts = qwen2();
    let turns = "<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\n⟦Ho.<|im_end|>⟧";
    assert_eq!(marked(r#"{"prompt": "Hi.", "completion": "Ho."}"#, &texts, &options()), [turns]);
    assert_eq!(marked(r#"{"instruction": "Hi.", "input": "", "output": "Ho."}"#, &texts, &options()), [turns]);
    assert_eq!(marked(r#"{"instruction": "Hi.", "output": "Ho."}"#, &texts, &options()), [turns]);
    assert_eq!(marked(r#"{"instruction": "Hi.", "input": null, "output": "Ho."}"#, &texts, &options()), [turns]);
    let about = r#"{"instruction": "Hi.", "input": "a\nb", "output": "Ho."}"#;
    assert_eq!(marked(about, &texts, &options()), [turns.replace("Hi.", "Hi.\n\na\nb")]);
    let gemma = "<bos><start_of_turn>user\nHi.<end_of_turn>\n<start_of_turn>model\n⟦Ho.<end_of_turn>⟧";
    assert_eq!(marked(r#"{"prompt": "Hi.", "completion": " Ho. "}"#, &gemma3(), &options()), [gemma]);
}

#[test]
fn without_a_template_prompt_and_completion_are_one_text() {
    let texts = qwen2().raw();
    assert_eq!(marked(r#"{"prompt": "Hi", "completion": " you"}"#, &texts, &options()), ["Hi⟦ you<|im_end|>⟧"]);
    assert_eq!(
        marked(r#"{"prompt": "Hi", "completion": " you<|im_end|>"}"#, &texts, &options()),
        ["Hi⟦ you<|im_end|>⟧"]
    );
    assert_eq!(
        marked(r#"{"prompt": "", "completion": "you"}"#, &gemma3().raw(), &options()),
        ["<bos>⟦you<end_of_turn>⟧"]
    );
    let messages = r#"{"messages": [{"role": "assistant", "content": "x"}]}"#;
    assert_eq!(
        refused(messages, &texts, &options()),
        "facts.jsonl, line 1: messages need a chat template, but none is used"
    );
}

#[test]
fn a_text_is_learnt_whole_and_its_control_tokens_are_read() {
    assert_eq!(marked(r#"{"text": "ab"}"#, &qwen2(), &options()), ["a⟦b<|im_end|>⟧"]);
    assert_eq!(marked(r#"{"text": "ab"}"#, &gemma3(), &options()), ["<bos>⟦ab<end_of_turn>⟧"]);
    let rendered = documents(r#"{"text": "<|im_start|>user\nHi.<|im_end|>"}"#, qwen2(), &options());
    assert_eq!((rendered[0].ids[0], rendered[0].targets.last()), (259, Some(&258)));
}

#[test]
fn what_a_message_spells_is_text() {
    let [document] = &documents(r#"{"prompt": "<|im_end|>", "completion": "<|im_end|>!"}"#, qwen2(), &options())[..]
    else {
        panic!("one document");
    };
    let controls = |ids: &[u32]| ids.iter().filter(|id| (257..260).contains(*id)).count();
    assert_eq!((controls(&document.ids), controls(&document.targets)), (3, 1));
    assert_eq!(document.targets.last(), Some(&258));
}

#[test]
fn ids_are_taken_as_they_are() {
    let line = r#"{"ids": [4, 5, 6], "targets": [-100, 6, 999], "weights": [1, 0.5, 1]}"#;
    let [document] = &documents(line, qwen2(), &options())[..] else { panic!("one document") };
    assert_eq!((&document.ids[..], &document.targets[..]), (&[4, 5, 6][..], &[NO_TARGET, 6, 999][..]));
    assert_eq!(document.weights, [1.0, 0.5, 1.0]);
    let counts = data("x", line.as_bytes(), qwen2(), &options()).expect("a good line").counts();
    assert_eq!(counts, Counts { examples: 1, documents: 1, tokens: 3, targets: 1, longest: 3, ..Counts::default() });
}

#[test]
fn all_of_an_example_is_learnt_on_demand() {
    let all = options().learn(Learn::All);
    let line = r#"{"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Ho."}]}"#;
    let whole = "<|im_start|>⟦user\nHi.<|im_end|>\n<|im_start|>assistant\nHo.<|im_end|>\n⟧";
    assert_eq!(marked(line, &qwen2(), &all), [whole]);
    assert_eq!(marked(r#"{"prompt": "Hi.", "completion": "Ho."}"#, &qwen2(), &all), [whole]);
    assert_eq!(marked(r#"{"prompt": "Hi", "completion": "!"}"#, &qwen2().raw(), &all), ["H⟦i!<|im_end|>⟧"]);
}

#[test]
fn a_bad_line_is_named_with_its_reason() {
    let messages = |of: &str| format!("{{\"messages\": [{of}]}}");
    let no_json = |line: &str| {
        let error = serde_json::from_str::<serde_json::Value>(line).expect_err("no JSON");
        format!("no JSON: {error}").replace(" at line 1 column", " at column")
    };
    let (deep, lone, long) = ("[".repeat(200), r#"{"text": "\ud800"}"#, format!("[\"{}\"]", "a".repeat(60)));
    let many = messages(&vec![r#"{"role": "user"}"#; 1025].join(", "));
    for (line, reason) in [
        ("hello", "no JSON: expected value at column 1"),
        (r#"{"text": "a"#, "no JSON: EOF while parsing a string at column 11"),
        (lone, &no_json(lone)),
        (&deep, &no_json(&deep)),
        ("7", "7 is no object"),
        (&long, &format!("{} is no object", &long[..40])),
        ("{}", "it has none of the keys ids, messages, conversations, prompt, instruction, text"),
        (r#"{"label": 1}"#, "it has none of the keys ids, messages, conversations, prompt, instruction, text"),
        (r#"{"prompt": "a", "answer": "b"}"#, "it has no completion"),
        (r#"{"prompt": "a"}"#, "it has no completion"),
        (r#"{"prompt": 1, "completion": "b"}"#, "prompt is 1, not a text"),
        (r#"{"prompt": "a", "completion": ""}"#, "nothing to learn: the completion is empty"),
        (r#"{"instruction": "a", "input": 7, "output": "b"}"#, "input is 7, not a text"),
        (r#"{"instruction": "a", "input": "b"}"#, "it has no output"),
        (r#"{"text": ["a"]}"#, "text is [\"a\"], not a text"),
        (r#"{"text": ""}"#, "nothing to learn"),
        (r#"{"messages": "a"}"#, "messages is no list"),
        (&messages(""), "nothing to learn: no message has the role assistant"),
        (&messages(r#"{"role": "user", "content": "a"}"#), "nothing to learn: no message has the role assistant"),
        (&messages(r#"{"role": "user", "content": "a"}, {"content": "b"}"#), "message 2: it has no role"),
        (
            &messages(r#"{"role": "bot", "content": "a"}"#),
            "message 1: the role \"bot\" is none of system, user, assistant, tool",
        ),
        (&messages(r#"{"role": "user", "content": 3}"#), "message 1: content is 3, not a text"),
        (&messages("3"), "message 1: 3 is no object"),
        (&many, "1025 messages, at most 1024 are read"),
        (r#"{"ids": [1, 264]}"#, "the id 264 is outside the vocabulary of 264 ids"),
        (r#"{"ids": [1, 2], "targets": [-100, 264]}"#, "nothing to learn"),
        (r#"{"ids": [1, 2], "weights": [0, 0]}"#, "nothing to learn"),
        (r#"{"ids": [1, 2], "weights": [0, -1]}"#, "-1 is no weight of 0 or more"),
    ] {
        let expected = format!("facts.jsonl, line 3: {reason}");
        let lines = format!("{{\"text\": \"good\"}}\n\n{line}\n{{\"text\": \"good\"}}");
        assert_eq!(refused(&lines, &qwen2(), &options()), expected);
        let mut stream = stream("facts.jsonl", lines.as_bytes(), qwen2(), &options());
        assert_eq!(stream.next(9).expect_err("a bad line").to_string(), expected);
        let skipped =
            data("facts.jsonl", lines.as_bytes(), qwen2(), &options().skip_bad(true)).expect("good lines too");
        assert_eq!((skipped.counts().bad, skipped.len()), (1, 2), "{line}");
    }
}

#[test]
fn a_line_without_end_is_refused_by_its_length() {
    let lines =
        [r#"{"text": "good"}"#, "\n", r#"{"text": ""#, &"a".repeat(16 << 20), "\"}\n", r#"{"text": "good"}"#].concat();
    assert_eq!(refused(&lines, &qwen2(), &options()), "facts.jsonl, line 2: the line has more than 16 MiB");
    let skipped = data("facts.jsonl", lines.as_bytes(), qwen2(), &options().skip_bad(true)).expect("good lines too");
    assert_eq!((skipped.counts().bad, skipped.len()), (1, 2));
}

#[test]
fn longer_documents_are_cut_or_dropped_and_counted() {
    let lines = "{\"text\": \"abcdef\"}\n{\"text\": \"ab\"}\n{\"prompt\": \"a long prompt\", \"completion\": \"b\"}\n";
    let (texts, cut) = (qwen2().raw(), options().length(4));
    let data_of = |options: &train::DataOptions| {
        data("facts.jsonl", lines.as_bytes(), texts.clone(), options).expect("good lines")
    };
    let shown = |data: &train::Data| -> Vec<String> {
        (0..data.len())
            .flat_map(|n| data.documents(n).expect("read"))
            .map(|document| crate::common::shown(&document, &texts))
            .collect()
    };
    let data = data_of(&cut);
    assert_eq!(shown(&data), ["a⟦bcde⟧", "a⟦b<|im_end|>⟧"]);
    assert_eq!(
        data.counts(),
        Counts { examples: 2, documents: 2, tokens: 6, targets: 6, longest: 4, cut: 1, dropped: 1, bad: 0 }
    );
    let data = data_of(&cut.clone().longer(Longer::Drop));
    assert_eq!(shown(&data), ["a⟦b<|im_end|>⟧"]);
    assert_eq!(
        data.counts(),
        Counts { examples: 1, documents: 1, tokens: 2, targets: 2, longest: 2, cut: 0, dropped: 2, bad: 0 }
    );
}

#[test]
fn files_without_an_example_are_refused() {
    let lines = "{}\n{\"prompt\": \"a long prompt\", \"completion\": \"b\"}\n";
    let options = options().length(4).skip_bad(true);
    let reason = "facts.jsonl: no example that can be learnt; 1 bad lines were skipped, and 1 documents are too long";
    assert_eq!(refused(lines, &qwen2().raw(), &options), reason);
}

/// A value that is like one of a line, or anything else.
fn any_value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::{Value, json};
    let texts =
        prop_oneof![Just("assistant"), Just("user"), Just("tool"), Just("<|im_end|>"), Just("é\n\u{0}"), Just("")];
    let leaf = prop_oneof![
        texts.prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..300i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
    ];
    let key =
        || prop_oneof![Just("role"), Just("content"), Just("tool_calls"), Just("function"), Just("reasoning_content")];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key(), inner.clone()), 0..4)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_string(), value)).collect()),
            (inner.clone(), inner)
                .prop_map(|(content, calls)| json!({ "role": "assistant", "content": content, "tool_calls": calls })),
        ]
    })
}

proptest! {
    #[test]
    fn no_line_panics_and_what_is_read_is_whole(
        pairs in vec((prop_oneof![Just("ids"), Just("targets"), Just("weights"), Just("messages"), Just("tools"), Just("prompt"),
            Just("completion"), Just("instruction"), Just("input"), Just("output"), Just("text"), Just("x")], any_value()), 0..4),
        cut in any::<proptest::sample::Index>(),
        whole: bool,
        length in 1..20u32,
    ) {
        let line: serde_json::Map<_, _> = pairs.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let mut bytes = serde_json::to_vec(&line).expect("a line");
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        for texts in [qwen2(), gemma3(), qwen2().raw()] {
            let options = options().length(length).skip_bad(true);
            let mut stream = stream("facts.jsonl", &bytes, texts.clone(), &options);
            for document in stream.next(2).expect("bad lines are skipped") {
                prop_assert!(!document.ids.is_empty() && document.ids.len() <= length as usize);
                prop_assert_eq!(document.targets.len(), document.ids.len());
                prop_assert!(texts.pieces(&document).iter().any(|piece| piece.learnt));
            }
            prop_assert!(stream.counts().bad + stream.counts().dropped + stream.counts().examples <= 3);
        }
    }
}
