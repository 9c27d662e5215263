//! Keys of messages and columns of lines: each one is applied, refused by name, or noted.

use crate::common::{data, documents, gemma3, gemma4, marked, options, qwen2, qwen3, refused, stream};
use model::chat::ChatTemplate;
use serde_json::{Value, json};
use train::{Learn, Texts};

/// A question, and an answer with more keys.
fn asked(more: Value) -> String {
    let mut answer = json!({ "role": "assistant", "content": "Ho." });
    answer.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({ "messages": [{ "role": "user", "content": "Hi." }, answer] }).to_string()
}

fn reason(line: &str, texts: &Texts) -> String {
    refused(line, texts, &options()).trim_start_matches("facts.jsonl, line 1: ").to_string()
}

/// Names of what had no effect.
fn unused(line: &str, texts: Texts) -> Vec<String> {
    let data = data("facts.jsonl", line.as_bytes(), texts.clone(), &options()).expect("a good line");
    let mut stream = stream("facts.jsonl", line.as_bytes(), texts, &options());
    stream.next(9).expect("a good line");
    assert_eq!(data.unused(), stream.unused());
    data.unused().into_iter().map(str::to_string).collect()
}

fn texts_of(texts: &Texts, template: &str) -> Texts {
    Texts::new(texts.tokenizer().clone(), ChatTemplate::new(template, texts.tokenizer()))
}

const ASKED: &str = "<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\n";

#[test]
fn a_turn_of_weight_zero_is_shown_and_not_learnt() {
    let turns = |first: Value| {
        let mut answer = json!({ "role": "assistant", "content": "1." });
        answer.as_object_mut().expect("an object").extend(first.as_object().expect("an object").clone());
        let ask = |text: &str| json!({ "role": "user", "content": text });
        json!({ "messages": [ask("One?"), answer, ask("Two?"), { "role": "assistant", "content": "2." }] }).to_string()
    };
    let expected = "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n1.<|im_end|>\n\
        <|im_start|>user\nTwo?<|im_end|>\n<|im_start|>assistant\n⟦2.<|im_end|>⟧";
    for none in [
        json!({"weight": 0}),
        json!({"weight": 0.0}),
        json!({"train": false}),
        json!({"training": false}),
        json!({"loss": false}),
    ] {
        assert_eq!(marked(&turns(none.clone()), &qwen2(), &options()), [expected], "{none}");
    }
    let both = expected.replace("1.<|im_end|>", "⟦1.<|im_end|>⟧");
    for all in [
        json!({"weight": 1}),
        json!({"weight": null}),
        json!({"train": true}),
        json!({"train_detail": null, "loss": 1}),
    ] {
        assert_eq!(marked(&turns(all.clone()), &qwen2(), &options()), [both.as_str()], "{all}");
    }
    let [document] = &documents(&turns(json!({"weight": 0.5})), qwen2(), &options())[..] else {
        panic!("one document")
    };
    let weights: Vec<f32> = document.weights.iter().copied().filter(|weight| *weight > 0.0).collect();
    assert_eq!(weights, [0.5, 0.5, 0.5, 1.0, 1.0, 1.0]);
}

#[test]
fn weights_that_say_nothing_that_can_be_done_are_refused() {
    for (more, expected) in [
        (json!({"weight": -1}), "message 2: weight is -1, not a number of 0 or more"),
        (json!({"weight": "0"}), "message 2: weight is \"0\", not a number of 0 or more"),
        (json!({"train": "no"}), "message 2: train is \"no\", not true or false"),
        (json!({"weight": 0}), "nothing to learn: no turn of the assistant has a weight above 0"),
    ] {
        assert_eq!(reason(&asked(more), &qwen2()), expected);
    }
    let user =
        r#"{"messages": [{"role": "user", "content": "Hi.", "train": true}, {"role": "assistant", "content": "Ho."}]}"#;
    assert_eq!(reason(user, &qwen2()), "message 1: train is true, but only turns of the assistant are learnt");
    let all = refused(&asked(json!({"weight": 0.5})), &qwen2(), &options().learn(Learn::All));
    assert_eq!(
        all,
        "facts.jsonl, line 1: a turn has a weight, but prompts are learnt, too; learn completions only, or leave the weight out"
    );
}

#[test]
fn keys_that_cannot_be_applied_are_refused_by_name() {
    let only_text = |key: &str| format!("message 2: it has {key}, but only text is learnt");
    let shown = |key: &str| {
        format!("message 2: the chat template does not show {key}; write it into content, or leave the key out")
    };
    let parts = "a turn is learnt whole or not at all; divide the turn, or leave the key out";
    for (more, expected) in [
        (json!({"audio": {"id": "a"}}), only_text("audio")),
        (json!({"images": ["a.png"]}), only_text("images")),
        (
            json!({"refusal": "No."}),
            "message 2: it has refusal, but write it into content, so that it is an answer".to_string(),
        ),
        (json!({"train_detail": [{"begin_offset": 0}]}), format!("message 2: it has train_detail, but {parts}")),
        (json!({"loss_mask": [1, 0]}), format!("message 2: it has loss_mask, but {parts}")),
        (json!({"name": "Oda"}), shown("name")),
        (json!({"reasoning_content": "Count."}), shown("reasoning_content")),
        (json!({"thinking": "Count."}), shown("thinking")),
        (json!({"channel": "final"}), shown("channel")),
        (json!({"value": "x"}), "message 2: it has both content and value".to_string()),
        (
            json!({"tool_calls": [{"type": "custom"}]}),
            "message 2: a call has the type \"custom\", but only functions are called".to_string(),
        ),
        (json!({"tool_calls": [7]}), "message 2: 7 is no call of a function".to_string()),
    ] {
        assert_eq!(reason(&asked(more), &qwen2()), expected);
    }
    let many: Value = (0..70).map(|n| (format!("k{n}"), json!(n))).collect::<serde_json::Map<_, _>>().into();
    assert_eq!(reason(&asked(many), &qwen2()), "message 2: 72 keys, at most 64 are read");
    // What is empty says nothing.
    let empty =
        json!({"audio": null, "refusal": "", "images": [], "name": null, "reasoning_content": "", "tool_calls": null});
    assert_eq!(marked(&asked(empty), &qwen2(), &options()), [format!("{ASKED}⟦Ho.<|im_end|>⟧")]);
}

#[test]
fn thinking_has_three_names_and_goes_to_the_one_that_the_template_knows() {
    let expected = [format!("{ASKED}⟦<think>\nCount.\n</think>\n\nHo.<|im_end|>⟧")];
    for key in ["reasoning_content", "reasoning", "thinking"] {
        assert_eq!(marked(&asked(json!({ key: "Count." })), &qwen3(), &options()), expected, "{key}");
    }
    let other = texts_of(&qwen3(), &crate::common::QWEN3.replace("reasoning_content", "reasoning"));
    assert_eq!(marked(&asked(json!({"reasoning_content": "Count."})), &other, &options()), expected);
    let two = reason(&asked(json!({"reasoning_content": "a", "thinking": "b"})), &qwen3());
    assert_eq!(two, "message 2: it has two texts of thinking, one of them in thinking");
}

#[test]
fn a_name_is_refused_where_the_template_has_the_word_for_functions_only() {
    let calls = texts_of(&qwen2(), &format!("{{# call.function.name #}}{}", crate::common::QWEN2));
    let expected = "message 2: the chat template does not show name; write it into content, or leave the key out";
    assert_eq!(reason(&asked(json!({"name": "Oda"})), &calls), expected);
    let shows =
        texts_of(&qwen2(), &crate::common::QWEN2.replace("message.role +", "message.role + (message.name or '') +"));
    let line =
        r#"{"messages": [{"role": "user", "name": "Oda", "content": "Hi."}, {"role": "assistant", "content": "Ho."}]}"#;
    assert_eq!(marked(line, &shows, &options()), [format!("{}⟦Ho.<|im_end|>⟧", ASKED.replace("user\n", "userOda\n"))]);
}

#[test]
fn keys_and_columns_without_effect_are_noted() {
    assert_eq!(unused(&asked(json!({"timestamp": 7, "tool_call_id": "a"})), qwen2()), ["timestamp of messages"]);
    let alpaca = r#"{"instruction": "Hi.", "input": "", "output": "Ho.", "text": "Below is ..", "source": "x"}"#;
    assert_eq!(unused(alpaca, qwen2()), ["source", "text"]);
    assert_eq!(marked(alpaca, &qwen2(), &options().skip_bad(true)), [format!("{ASKED}⟦Ho.<|im_end|>⟧")]);
    assert_eq!(unused(r#"{"text": "ab", "id": 7, "meta": null}"#, qwen2()), ["id"]);
    let switched =
        r#"{"prompt": "Hi.", "completion": "Ho.", "enable_thinking": false, "chat_template_kwargs": {"mood": 1}}"#;
    assert_eq!(unused(switched, qwen2()), ["enable_thinking", "mood of chat_template_kwargs"]);
    assert!(unused(r#"{"prompt": "Hi.", "completion": "Ho."}"#, qwen2()).is_empty());
}

#[test]
fn sharegpt_is_read_by_its_usual_names() {
    let line = |roles: [&str; 3]| {
        let turn = |role: &str, text: &str| json!({ "from": role, "value": text });
        json!({ "conversations": [turn(roles[0], "Be."), turn(roles[1], "Hi."), turn(roles[2], "Ho.")] }).to_string()
    };
    let expected = [format!("<|im_start|>system\nBe.<|im_end|>\n{ASKED}⟦Ho.<|im_end|>⟧")];
    for roles in [
        ["system", "human", "gpt"],
        ["system", "user", "assistant"],
        ["System", "User", "Assistant"],
        ["developer", "human", "chatgpt"],
    ] {
        assert_eq!(marked(&line(roles), &qwen2(), &options()), expected, "{roles:?}");
    }
    // The system may stand beside the messages, and NeMo names the roles that are not learnt.
    let beside = r#"{"system": "Be.", "mask": "User", "conversations": [{"from": "User", "value": "Hi."}, {"from": "Assistant", "value": "Ho."}]}"#;
    assert_eq!(marked(beside, &qwen2(), &options()), expected);
    assert_eq!(
        reason(&beside.replace("\"mask\": \"User\"", "\"mask\": \"Assistant\""), &qwen2()),
        "mask is \"Assistant\", but the turns of the assistant are learnt, and no others"
    );
    let twice =
        r#"{"system": "Be.", "messages": [{"role": "system", "content": "a"}, {"role": "assistant", "content": "b"}]}"#;
    assert_eq!(reason(twice, &qwen2()), "it has a column system, and a message of the system");
}

#[test]
fn a_developer_is_the_system_where_the_template_does_not_know_it() {
    let line = r#"{"messages": [{"role": "developer", "content": "Be."}, {"role": "assistant", "content": "Ho."}]}"#;
    assert_eq!(
        marked(line, &qwen2(), &options()),
        ["<|im_start|>system\nBe.<|im_end|>\n<|im_start|>assistant\n⟦Ho.<|im_end|>⟧"]
    );
    let knows = texts_of(&qwen2(), &format!("{{# developer #}}{}", crate::common::QWEN2));
    assert_eq!(
        marked(line, &knows, &options()),
        ["<|im_start|>developer\nBe.<|im_end|>\n<|im_start|>assistant\n⟦Ho.<|im_end|>⟧"]
    );
}

#[test]
fn structures_may_stand_as_json_text() {
    let expected = [format!("{ASKED}⟦Ho.<|im_end|>⟧")];
    let messages = r#"[{"role": "user", "content": "Hi.", "tool_calls": null}, {"role": "assistant", "content": [{"type": "text", "text": "Ho.", "image_url": null}]}]"#;
    let plain = texts_of(
        &qwen2(),
        &crate::common::QWEN2.replace(
            "message.content +",
            "(message.content if message.content is string else message.content[0].text) +",
        ),
    );
    assert_eq!(marked(&json!({ "messages": messages }).to_string(), &plain, &options()), expected);
    let template = "{% for tool in tools or [] %}{{ (tool.function or tool).name }} {% endfor %}{% for message in messages %}{{ (message.content or message.tool_calls[0].function.name) + '<|im_end|>' }}{% endfor %}";
    let texts = texts_of(&qwen2(), template);
    let call = r#"{"name": "sun", "arguments": "{}"}"#;
    let frame = json!([{ "id": "1", "type": "function", "function": call, "index": null }]);
    for calls in [
        json!({ "tool_calls": frame }),
        json!({ "tool_calls": frame.to_string() }),
        json!({ "tool_calls": [call] }),
        json!({ "function_call": call }),
    ] {
        let mut answer = json!({ "role": "assistant", "content": "" });
        answer.as_object_mut().expect("an object").extend(calls.as_object().expect("an object").clone());
        let line = json!({ "messages": [{ "role": "user", "content": "a" }, answer], "tools": "[{\"type\": \"function\", \"function\": {\"name\": \"sun\"}}, {\"name\": \"rain\"}]" });
        assert_eq!(marked(&line.to_string(), &texts, &options()), ["sun rain a<|im_end|>⟦sun<|im_end|>⟧"], "{calls}");
    }
    // LLaMA-Factory has a role for calls, and OpenAI once had a column for functions.
    let line = json!({ "conversations": [{ "from": "human", "value": "a" }, { "from": "function_call", "value": call }], "functions": [{ "name": "sun" }] });
    assert_eq!(marked(&line.to_string(), &texts, &options()), ["sun a<|im_end|>⟦sun<|im_end|>⟧"]);
    let bad =
        json!({ "messages": [{ "role": "assistant", "content": "b" }], "tools": [{ "type": "code_interpreter" }] });
    assert_eq!(reason(&bad.to_string(), &texts), "the tool {\"type\":\"code_interpreter\"} is no function");
}

#[test]
fn of_a_prompt_of_messages_only_the_completion_is_learnt() {
    let line = json!({
        "prompt": [{ "role": "user", "content": "One?" }, { "role": "assistant", "content": "1." }, { "role": "user", "content": "Two?" }],
        "completion": [{ "role": "assistant", "content": "2." }],
    });
    let expected = "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n1.<|im_end|>\n\
        <|im_start|>user\nTwo?<|im_end|>\n<|im_start|>assistant\n⟦2.<|im_end|>⟧";
    assert_eq!(marked(&line.to_string(), &qwen2(), &options()), [expected]);
}

#[test]
fn columns_that_change_what_is_learnt_are_refused_by_name() {
    let preferences = "but preferences are not learnt (no DPO); give chosen as completion, and leave rejected out";
    for (more, expected) in [
        (r#""chosen": "b", "rejected": "c""#, format!("it has chosen, {preferences}")),
        (r#""completion": "b", "rejected": "c""#, format!("it has rejected, {preferences}")),
        (r#""completion": "b", "images": ["a.png"]"#, "it has images, but only text is learnt".to_string()),
        (
            r#""completion": "b", "label": false"#,
            "it has label, but whether a completion is good is not learnt; give the good ones without it".to_string(),
        ),
    ] {
        assert_eq!(reason(&format!("{{\"prompt\": \"a\", {more}}}"), &qwen2()), expected);
    }
    assert_eq!(unused(r#"{"prompt": "a", "completion": "b", "label": 3, "images": []}"#, qwen2()), ["images", "label"]);
}

#[test]
fn an_empty_turn_is_refused_as_an_empty_completion_is() {
    let expected = "message 2: nothing to learn: the turn of the assistant is empty";
    for content in
        [json!({"content": ""}), json!({"content": null}), json!({"content": [{"type": "text", "text": ""}]})]
    {
        for texts in [qwen2(), qwen3(), gemma3(), gemma4()] {
            assert_eq!(reason(&asked(content.clone()), &texts), expected);
        }
    }
    assert_eq!(reason(r#"{"prompt": "a", "completion": ""}"#, &qwen2()), "nothing to learn: the completion is empty");
    assert_eq!(
        reason(r#"{"instruction": "a", "input": null, "output": ""}"#, &qwen2()),
        "nothing to learn: the completion is empty"
    );
    // As context an empty turn says what happened.
    let context = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "weight": 0}, {"role": "user", "content": "b"},
        {"role": "assistant", "content": "c"}]}"#
        .replace('\n', " ");
    assert_eq!(documents(&context, qwen2(), &options()).len(), 1);
}
