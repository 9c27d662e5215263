//! Go templates rendered through Jinja, and unsupported Go templates.

use model::chat::{ChatTemplate, Message, RenderOptions};
use model::ollama::jinja;
use model::tokenizer::{Parts, Tokenizer};
use serde_json::json;

fn tokenizer() -> Tokenizer {
    let hidden = |b: u8| !matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let spell = |byte: u8| match hidden(byte) {
        true => char::from_u32(0x100 + (0..byte).filter(|&b| hidden(b)).count() as u32).unwrap(),
        false => byte as char,
    };
    let tokens: Vec<String> = (0..=255).map(|byte| spell(byte).to_string()).collect();
    let tokens = tokens.iter().map(String::as_bytes).collect();
    Tokenizer::from_parts(&Parts {
        model: "gpt2",
        pre: Some("qwen2"),
        tokens,
        merges: Some(vec![]),
        ..Parts::default()
    })
    .unwrap()
}

fn render(go: &str, messages: &[Message], options: &RenderOptions) -> String {
    ChatTemplate::new(&jinja(go).unwrap(), &tokenizer()).render(messages, options).unwrap()
}

fn turns() -> Vec<Message> {
    vec![Message::system("s"), Message::user("u \"1\"\n"), Message::assistant("a"), Message::user("{{ v }}")]
}

#[test]
fn the_old_style_repeats_its_turn_and_stops_before_the_response() {
    let go = "{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}{{ if .Prompt }}<|im_start|>user\n{{ .Prompt }}<|im_end|>\n{{ end }}<|im_start|>assistant\n{{ .Response }}<|im_end|>\n";
    let expected = "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu \"1\"\n<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n\
                    <|im_start|>user\n{{ v }}<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(render(go, &turns(), &RenderOptions::default()), expected);
    assert_eq!(render("{{ .Prompt }} -> ", &turns()[1..2], &RenderOptions::default()), "u \"1\"\n -> ");
}

#[test]
fn the_new_style_walks_the_messages() {
    let go = r#"{{- /* a comment */ -}}
{{- range $i, $_ := .Messages }}
{{- $last := eq (len (slice $.Messages $i)) 1 }}
{{- if or (eq .Role "user") (eq .Role "system") }}<start_of_turn>user
{{ .Content }}<end_of_turn>
{{ if $last }}<start_of_turn>model
{{ end }}
{{- else if eq .Role "assistant" }}<start_of_turn>model
{{ .Content }}{{ if not $last }}<end_of_turn>
{{ end }}
{{- end }}
{{- end }}"#;
    let turn = |role: &str, text: &str| format!("<start_of_turn>{role}\n{text}<end_of_turn>\n");
    let expected = [
        turn("user", "s"),
        turn("user", "u \"1\"\n"),
        turn("model", "a"),
        turn("user", "{{ v }}"),
        "<start_of_turn>model\n".into(),
    ];
    assert_eq!(render(go, &turns(), &RenderOptions::default()), expected.concat());
}

#[test]
fn tools_thinking_and_calls_have_their_fields() {
    let go = r#"{{ if .Tools }}{{ range .Tools }}{{ .Function }}{{ end }}{{ end }}{{ .System }}|{{ if and .IsThinkSet (not .Think) }}/no{{ end }}
{{- range $m := .Messages }}{{ if $m.ToolCalls }}{{ range $m.ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}{{ else }}[{{ $m.Role }}]{{ end }}{{ end }}"#;
    let tools = Some(json!([{ "type": "function", "function": { "name": "f", "a": [1] } }]));
    let call = json!({ "type": "function", "function": { "name": "f", "arguments": { "x": "é" } } });
    let messages = [Message::system("s"), Message { tool_calls: vec![call], ..Message::assistant("") }];
    let options = RenderOptions::default().tools(tools).enable_thinking(false);
    assert_eq!(
        render(go, &messages, &options),
        "{\"name\":\"f\",\"a\":[1]}s|/no[system]{\"name\": \"f\", \"arguments\": {\"x\":\"é\"}}"
    );
}

#[test]
fn text_of_a_template_is_text_and_quotes_may_hold_braces() {
    assert_eq!(
        render("{% if %} {# x #}\\ {{ \"}}{{\" }}{{ `\\n` }}{{ .Response }}", &[], &RenderOptions::default()),
        "{% if %} {# x #}\\ }}{{\\n"
    );
}

#[test]
fn what_is_not_understood_is_named() {
    for (go, reason) in [
        ("{{ .Prompt", "{{ has no }}"),
        ("{{ if .Prompt }}x", "a block has no end"),
        ("{{ end }}", "{{ end }} is not understood"),
        ("{{ .Secret }}", "{{ .Secret }} is not understood"),
        ("{{ template \"x\" }}", "is not understood"),
        ("{{ with .Prompt }}{{ . }}{{ end }}", "{{ with .Prompt }} is not understood"),
        ("{{ range .Messages }}{{ .Images }}{{ end }}", "{{ .Images }} is not understood"),
        ("{{ if eq .Prompt }}{{ end }}", "is not understood"),
        ("{{ printf \"%s\" .Prompt }}", "is not understood"),
        ("{{ $x.__class__ }}", "is not understood"),
        ("{{ 1;2 }}", "is not understood"),
        ("{{ \"x }}", "{{ has no }}"),
    ] {
        let found = jinja(go).unwrap_err();
        assert!(found.contains(reason), "{go}: {found}");
    }
}

#[test]
fn mutated_templates_are_translated_to_sound_ones_or_refused() {
    let go = "{{- range $i, $m := .Messages }}{{ if and (eq $m.Role \"user\") (lt $i 9) }}{{ $m.Content }}{{ else }}-{{ end }}{{ end }}{{ .System }}";
    let parts = [
        "{{", "}}", "end", "if", "(", ")", ".", "$", "\"", "`", "|", ":=", " ", "eq", "é", "range", "else", "%}",
        "1.2.3", "[0]",
    ];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % end as u64) as usize
    };
    let (tokenizer, mut taken) = (tokenizer(), 0);
    for _ in 0..3000 {
        let mut text: Vec<char> = go.chars().collect();
        for _ in 0..=below(2) {
            let at = below(text.len());
            match below(3) {
                0 => drop(text.splice(at..at, parts[below(parts.len())].chars())),
                1 => drop(text.drain(at..(at + 1 + below(6)).min(text.len()))),
                _ => text[at] = parts[below(parts.len())].chars().next().unwrap(),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(jinja) = jinja(&text) {
            taken += 1;
            let template = ChatTemplate::new(&jinja, &tokenizer);
            template.check().unwrap_or_else(|error| panic!("{text}: {error}\n{jinja}"));
            let _ = template.render(&turns(), &RenderOptions::default());
        }
    }
    assert!((150..2900).contains(&taken), "{taken} of 3000");
}
