//! Conversations: every turn of the assistant is learnt behind the prompt that `weft run` has.

use crate::common::{QWEN2, built_ins, documents, gemma3, gemma4, marked, options, qwen2, qwen3, qwq, refused};
use model::chat::{ChatTemplate, Message, RenderOptions};
use serde_json::{Value, json};
use train::{Document, Longer, NO_TARGET, Texts};

fn line(messages: &Value) -> String {
    json!({ "messages": messages }).to_string()
}

/// Two questions and their answers.
fn talk() -> Value {
    json!([
        { "role": "user", "content": "One?" },
        { "role": "assistant", "content": "1." },
        { "role": "user", "content": "Two?" },
        { "role": "assistant", "content": "2." },
        { "role": "user", "content": "Thanks." },
    ])
}

#[test]
fn turns_of_one_conversation_share_a_document() {
    let qwen = "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n⟦1.<|im_end|>⟧\n\
        <|im_start|>user\nTwo?<|im_end|>\n<|im_start|>assistant\n⟦2.<|im_end|>⟧";
    assert_eq!(marked(&line(&talk()), &qwen2(), &options()), [qwen]);
    let gemma = "<bos><start_of_turn>user\nOne?<end_of_turn>\n<start_of_turn>model\n⟦1.<end_of_turn>⟧\n\
        <start_of_turn>user\nTwo?<end_of_turn>\n<start_of_turn>model\n⟦2.<end_of_turn>⟧";
    assert_eq!(marked(&line(&talk()), &gemma3(), &options()), [gemma]);
}

#[test]
fn a_turn_that_is_shown_otherwise_later_begins_a_document() {
    let first = "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n";
    let second = format!("{first}1.<|im_end|>\n<|im_start|>user\nTwo?<|im_end|>\n<|im_start|>assistant\n");
    let empty = "<think>\n\n</think>\n\n";
    let expected = [format!("{first}⟦{empty}1.<|im_end|>⟧"), format!("{second}⟦{empty}2.<|im_end|>⟧")];
    assert_eq!(marked(&line(&talk()), &qwen3(), &options()), expected);
    // Without thinking, the prompt has the empty one.
    let texts = qwen3().render(RenderOptions::default().enable_thinking(false));
    let expected = [format!("{first}{empty}⟦1.<|im_end|>⟧"), format!("{second}{empty}⟦2.<|im_end|>⟧")];
    assert_eq!(marked(&line(&talk()), &texts, &options()), expected);
}

#[test]
fn the_documents_of_a_line_are_marked_as_one_example() {
    let lines = format!("{}\n{}", line(&talk()), line(&talk()));
    let continues = |texts: Texts| {
        documents(&lines, texts, &options()).iter().map(|document| document.continues).collect::<Vec<_>>()
    };
    assert_eq!(continues(qwen3()), [false, true, false, true]);
    assert_eq!(continues(qwen2()), [false, false]);
    // What is left out is no beginning: the second document stands for the whole example.
    let first = documents(&lines, qwen3(), &options().longer(Longer::Drop))[1].ids.len() as u32 - 1;
    let kept = documents(&lines, qwen3(), &options().length(first).longer(Longer::Drop));
    assert!(kept.len() == 2 && kept.iter().all(|document| !document.continues));
}

#[test]
fn a_turn_continues_the_document_if_only_what_is_behind_its_end_differs() {
    // Between turns stand two line breaks, which are one token; behind the last turn stands one.
    let template = QWEN2.replace("{{ '<|im_start|>' +", "{{ ('' if loop.first else '\\n') + '<|im_start|>' +");
    let template = template.replace("{{ '<|im_start|>assistant", "{{ '\\n<|im_start|>assistant");
    let texts = texts_of(&qwen2(), &template);
    let expected = "<|im_start|>user\nOne?<|im_end|>\n\n<|im_start|>assistant\n⟦1.<|im_end|>⟧\n\n\
        <|im_start|>user\nTwo?<|im_end|>\n\n<|im_start|>assistant\n⟦2.<|im_end|>⟧";
    assert_eq!(marked(&line(&talk()), &texts, &options()), [expected]);
    let [document] = &documents(&line(&talk()), texts.clone(), &options())[..] else { panic!("one document") };
    let messages: Vec<Message> = serde_json::from_value(talk()).expect("messages");
    let (prompt, answer) = texts
        .template()
        .expect("one")
        .encode_answer(texts.tokenizer(), &messages[..4], &RenderOptions::default())
        .expect("ids");
    assert_eq!(document.ids[..prompt.len()], prompt);
    assert!(answer.starts_with(&document.targets[prompt.len() - 1..]));
}

#[test]
fn thinking_is_learnt_where_the_template_shows_it() {
    let thought = json!([
        { "role": "user", "content": "One?" },
        { "role": "assistant", "content": "1.", "reasoning_content": "Count." },
    ]);
    let expected =
        "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n⟦<think>\nCount.\n</think>\n\n1.<|im_end|>⟧";
    assert_eq!(marked(&line(&thought), &qwen3(), &options()), [expected]);
}

#[test]
fn an_answer_follows_the_empty_thinking_of_its_prompt() {
    let first = "<bos><|turn>user\nOne?<turn|>\n<|turn>model\n";
    let second = format!("{first}1.<turn|>\n<|turn>user\nTwo?<turn|>\n<|turn>model\n");
    let empty = "<|channel>thought\n<channel|>";
    let expected = [format!("{first}{empty}⟦1.<turn|>⟧"), format!("{second}{empty}⟦2.<turn|>⟧")];
    assert_eq!(marked(&line(&talk()), &gemma4(), &options()), expected);
    // With thinking asked for, nothing is between the turn's head and the answer.
    let texts = gemma4().render(RenderOptions::default().enable_thinking(true));
    assert_eq!(
        marked(&line(&talk()), &texts, &options()),
        [format!("{}⟦2.<turn|>⟧", second.replace("1.<turn|>", "⟦1.<turn|>⟧"))]
    );
}

#[test]
fn the_token_that_hands_a_call_over_is_learnt() {
    let call = json!({ "type": "function", "function": { "name": "sun", "arguments": {} } });
    let asked = json!([
        { "role": "user", "content": "Sun?" },
        { "role": "assistant", "content": "", "tool_calls": [call] },
        { "role": "tool", "content": "yes" },
        { "role": "assistant", "content": "It is." },
    ]);
    let texts = gemma4().render(RenderOptions::default().enable_thinking(true));
    let expected = "<bos><|turn>user\nSun?<turn|>\n<|turn>model\n⟦<|tool_call>call:sun{}<tool_call|><|tool_response>⟧yes<tool_response|>\
        ⟦It is.<turn|>⟧";
    assert_eq!(marked(&line(&asked), &texts, &options()), [expected]);
}

#[test]
fn parts_of_text_are_learnt_under_a_template_that_shows_text_and_calls_are_not_dropped() {
    let template = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}\
        {{ message.content if message.content is string else '' }}{{ '<|im_end|>\n' }}{% endfor %}\
        {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    let texts = texts_of(&qwen2(), template);
    let parts = |text: &str| json!([{ "type": "text", "text": text }]);
    let talk = json!([{ "role": "user", "content": parts("One?") }, { "role": "assistant", "content": parts("1.") }]);
    let expected = "<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n⟦1.<|im_end|>⟧";
    assert_eq!(marked(&line(&talk), &texts, &options()), [expected]);
    let call = json!({ "type": "function", "function": { "name": "sun", "arguments": {} } });
    let called =
        json!([{ "role": "user", "content": "a" }, { "role": "assistant", "content": null, "tool_calls": [call] }]);
    let error = refused(&line(&called), &texts, &options());
    assert!(error.contains("line 1: the chat template does not show the call of sun in message 2"), "{error}");
}

#[test]
fn an_answer_that_no_prompt_leads_to_is_refused() {
    let reason = "the chat template does not render this answer behind the prompt for it, so that a model never learns to give it; \
        use a text that is already rendered";
    assert_eq!(refused(&line(&talk()), &qwq(), &options()), format!("facts.jsonl, line 1: {reason}"));
    let error = "the chat template refuses these messages: no";
    let strict = texts_of(&qwen2(), "{{ raise_exception('no') }}");
    assert_eq!(refused(&line(&talk()), &strict, &options()), format!("facts.jsonl, line 1: {error}"));
}

/// The same tokenizer with another template.
fn texts_of(texts: &Texts, template: &str) -> Texts {
    Texts::new(texts.tokenizer().clone(), ChatTemplate::new(template, texts.tokenizer()))
}

#[test]
fn tools_of_a_line_are_shown_to_the_template() {
    let template = "{{ tools | length if tools else 'no' }}{% for message in messages %}{{ message.content + '<|im_end|>' }}{% endfor %}";
    let texts = texts_of(&qwen2(), template);
    let with = json!({ "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": "b" }], "tools": [{}, {}] });
    assert_eq!(marked(&with.to_string(), &texts, &options()), ["2a<|im_end|>⟦b<|im_end|>⟧"]);
    let without = json!({ "messages": with["messages"], "tools": null });
    assert_eq!(marked(&without.to_string(), &texts, &options()), ["noa<|im_end|>⟦b<|im_end|>⟧"]);
    let given = texts.render(RenderOptions::default().tools(json!([{}])));
    assert_eq!(marked(&without.to_string(), &given, &options()), ["1a<|im_end|>⟦b<|im_end|>⟧"]);
}

/// For every document and every learnt stretch: the ids before it are those of a prompt.
fn stretches(documents: &[Document]) -> Vec<(Vec<u32>, Vec<u32>)> {
    let mut found = vec![];
    for document in documents {
        let learnt = |t: usize| document.targets[t] != NO_TARGET;
        let begins = (0..document.ids.len()).filter(|&t| learnt(t) && (t == 0 || !learnt(t - 1)));
        found.extend(begins.map(|t| {
            let answer = document.targets[t..].iter().copied().take_while(|target| *target != NO_TARGET).collect();
            (document.ids[..=t].to_vec(), answer)
        }));
    }
    found
}

#[test]
fn what_training_renders_weft_run_renders() {
    let contents = ["1.", "\n\nindented", "<think>x</think>y", "é", "<|im_end|>", "trailing \n"];
    let [chatml, gemma, gemma_4] = built_ins();
    let published = [("qwen2", qwen2()), ("qwen3", qwen3()), ("gemma3", gemma3()), ("gemma4", gemma4())];
    let built_in = [("built-in ChatML", chatml), ("built-in Gemma", gemma), ("built-in Gemma 4", gemma_4)];
    for (name, texts) in published.into_iter().chain(built_in) {
        for first in contents {
            for second in contents {
                let mut messages = talk();
                messages[1]["content"] = first.into();
                messages[3]["content"] = second.into();
                let found = stretches(&documents(&line(&messages), texts.clone(), &options()));
                let messages: Vec<Message> = serde_json::from_value(messages).expect("messages");
                let (tokenizer, template) = (texts.tokenizer(), texts.template().expect("a template"));
                let prompt = |turn: usize| {
                    template.encode(tokenizer, &messages[..turn], &RenderOptions::default()).expect("a prompt")
                };
                let prompts: Vec<_> = found.iter().map(|(prompt, _)| prompt.clone()).collect();
                assert_eq!(prompts, [prompt(1), prompt(3)], "{name}: {first:?}, {second:?}");
                for ((_, answer), content) in found.iter().zip([first, second]) {
                    let text = tokenizer.decode(answer);
                    assert!(text.contains(content.trim()), "{name}: {text:?}");
                    assert!(
                        answer.iter().filter(|&&id| tokenizer.is_end(id)).count() == 1
                            && tokenizer.is_end(answer[answer.len() - 1])
                    );
                }
            }
        }
    }
}

#[test]
fn turns_behind_the_length_are_cut_off() {
    let (line, texts) = (line(&talk()), qwen2());
    // The 24th token is the first one of the answer, its end is the 26th, which the 25th leads to.
    let shown = |length: u32| marked(&line, &texts, &options().length(length));
    assert_eq!(shown(24), ["<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n⟦1.⟧"]);
    assert_eq!(shown(25), ["<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n⟦1.<|im_end|>⟧"]);
    assert!(documents(&line, texts.clone(), &options().length(25).longer(Longer::Drop)).is_empty());
    // Qwen3's documents are cut each by itself.
    let empty = "<think>\n\n</think>\n\n";
    let first = format!("<|im_start|>user\nOne?<|im_end|>\n<|im_start|>assistant\n⟦{empty}1.<|im_end|>⟧");
    assert_eq!(marked(&line, &qwen3(), &options().length(30)), [first]);
}
