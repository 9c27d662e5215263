//! Ollama's templates as Jinja: of Go's template language what chat templates use, and a reason for
//! everything else.
//!
//! There are two styles. The newer walks `.Messages`; the older is one turn of `.System`, `.Prompt`
//! and `.Response`, repeated for each answer and cut at the response that is still to come.

use super::template_words::{Word, actions, words};

/// Prints as Go does: text as it is, structures as JSON, nothing for what is absent.
const SHOW: &str = "{% macro show(v) %}{% if v is string %}{{ v }}{% elif v is undefined or v is none %}\
{% elif v is mapping or v is sequence %}{{ v | tojson(separators=(',', ':')) }}{% else %}{{ v }}{% endif %}{% endmacro %}";
const SYSTEM: &str = "{% set ns.System = messages | selectattr('role', 'equalto', 'system') | map(attribute='content') | join('\\n\\n') %}";
/// Where the old style's last answer begins; no text has it.
const CUT: &str = "'\\u0000response\\u0000'";

/// Bytes of a template's text, and of the Jinja that an expression becomes: `eq` repeats its first
/// argument.
const MOST_BYTES: usize = 1 << 20;
/// Parentheses within parentheses; the translator recurses over them.
const MOST_LEVELS: usize = 64;

/// A piece of a template: text, or what stands between braces.
pub(super) enum Piece {
    Text(String),
    Action(String),
}

/// The Jinja template that renders as the Go template `go` does.
///
/// # Errors
/// What it uses that is not understood, for people.
pub fn jinja(go: &str) -> Result<String, String> {
    if go.len() > MOST_BYTES {
        return Err("the template has more than 1 MiB of text".to_string());
    }
    let pieces = actions(go)?;
    let uses = |field: &str| pieces.iter().any(|piece| matches!(piece, Piece::Action(code) if code.contains(field)));
    let mut writer = Writer { out: String::new(), blocks: vec![], dots: vec![], loops: 0 };
    let walks = uses(".Messages");
    for piece in &pieces {
        writer.piece(piece)?;
    }
    if !writer.blocks.is_empty() {
        return Err("a block has no end".to_string());
    }
    if !walks && !uses(".Response") {
        writer.out.push_str("{{ show(ns.Response) }}");
    }
    let body = writer.out;
    let start = format!("{SHOW}{{% set ns = namespace(System='', Prompt='', Response='') %}}");
    if walks {
        return Ok(format!("{start}{SYSTEM}{body}"));
    }
    Ok(format!(
        "{start}{{% for message in messages %}}{{% if message.role == 'system' %}}{{% set ns.System = message.content %}}\
         {{% elif message.role == 'assistant' %}}{{% set ns.Response = message.content %}}{body}{{% set ns.System = '' %}}{{% set ns.Prompt = '' %}}\
         {{% else %}}{{% set ns.Prompt = message.content %}}{{% endif %}}{{% endfor %}}\
         {{% if add_generation_prompt %}}{{% set ns.Response = {CUT} %}}{{% set last %}}{body}{{% endset %}}{{{{ last.split({CUT})[0] }}}}{{% endif %}}"
    ))
}

#[derive(Clone, Copy, PartialEq)]
enum Block {
    If,
    /// The part of an `if` behind its `else`.
    Else,
    Range,
}

struct Writer {
    out: String,
    blocks: Vec<Block>,
    /// What `.` means in each range around.
    dots: Vec<String>,
    loops: usize,
}

impl Writer {
    fn piece(&mut self, piece: &Piece) -> Result<(), String> {
        let code = match piece {
            Piece::Text(text) if text.is_empty() => return Ok(()),
            Piece::Text(text) => {
                self.out.push_str(&format!("{{{{ {} }}}}", literal(text)));
                return Ok(());
            }
            Piece::Action(code) => code,
        };
        let words = words(code)?;
        if deepest(&words) > MOST_LEVELS {
            return Err("the template nests more than 64 parentheses".to_string());
        }
        let refused = || format!("{{{{ {code} }}}} is not understood");
        let written = match words.as_slice() {
            [] => String::new(),
            [Word::Name(word), rest @ ..] if word == "if" => {
                self.blocks.push(Block::If);
                format!("{{% if {} %}}", self.value(rest).ok_or_else(refused)?)
            }
            [Word::Name(word), Word::Name(other), rest @ ..]
                if word == "else" && other == "if" && self.blocks.last() == Some(&Block::If) =>
            {
                format!("{{% elif {} %}}", self.value(rest).ok_or_else(refused)?)
            }
            [Word::Name(word)] if word == "else" && self.blocks.last() == Some(&Block::If) => {
                self.blocks.pop();
                self.blocks.push(Block::Else);
                "{% else %}".to_string()
            }
            [Word::Name(word)] if word == "end" => match self.blocks.pop().ok_or_else(refused)? {
                Block::If | Block::Else => "{% endif %}".to_string(),
                Block::Range => {
                    self.dots.pop();
                    "{% endfor %}".to_string()
                }
            },
            [Word::Name(word), rest @ ..] if word == "range" => self.range(rest).ok_or_else(refused)?,
            [Word::Variable(name), Word::Assign, rest @ ..] if !name.contains('.') => {
                format!("{{% set ns.v_{name} = {} %}}", self.value(rest).ok_or_else(refused)?)
            }
            value => format!("{{{{ show({}) }}}}", self.value(value).ok_or_else(refused)?),
        };
        self.out.push_str(&written);
        Ok(())
    }

    fn range(&mut self, words: &[Word]) -> Option<String> {
        let (names, over): (Vec<&str>, &[Word]) = match words {
            [Word::Variable(i), Word::Comma, Word::Variable(item), Word::Assign, rest @ ..] => (vec![i, item], rest),
            [Word::Variable(item), Word::Assign, rest @ ..] => (vec!["", item], rest),
            rest => (vec![], rest),
        };
        if names.iter().any(|name| name.contains('.')) {
            return None;
        }
        let (over, dot) = (self.value(over)?, format!("item{}", self.loops));
        let mut written = format!("{{% for {dot} in {over} or [] %}}");
        for (name, value) in
            names.iter().zip(["loop.index0", &dot]).filter(|(name, _)| !name.is_empty() && **name != "_")
        {
            written.push_str(&format!("{{% set ns.v_{name} = {value} %}}"));
        }
        self.loops += 1;
        self.dots.push(dot);
        self.blocks.push(Block::Range);
        Some(written)
    }

    /// A whole pipeline.
    fn value(&self, words: &[Word]) -> Option<String> {
        let mut rest = words;
        let value = self.call(&mut rest)?;
        match rest {
            [] => Some(value),
            [Word::Pipe, Word::Name(name)] if name == "json" => {
                Some(format!("({value} | tojson(separators=(',', ':')))"))
            }
            _ => None,
        }
    }

    /// A function with its arguments, or one operand.
    fn call(&self, rest: &mut &[Word]) -> Option<String> {
        let [Word::Name(name), after @ ..] = *rest else { return self.operand(rest) };
        if matches!(name.as_str(), "true" | "false" | "nil") {
            return self.operand(rest);
        }
        *rest = after;
        let mut arguments = vec![];
        while !matches!(rest, [] | [Word::Close, ..] | [Word::Pipe, ..]) {
            arguments.push(self.operand(rest)?);
        }
        let infix = |operator: &str| (arguments.len() > 1).then(|| format!("({})", arguments.join(operator)));
        // What is joined below repeats its arguments once for each of them.
        let bytes: usize = arguments.iter().map(String::len).sum();
        if bytes.saturating_mul(arguments.len()) > MOST_BYTES {
            return None;
        }
        match (name.as_str(), arguments.as_slice()) {
            ("and", _) => infix(" and "),
            ("or", _) => infix(" or "),
            ("eq", [first, others @ ..]) if !others.is_empty() => {
                let equal: Vec<String> = others.iter().map(|other| format!("{first} == {other}")).collect();
                Some(format!("({})", equal.join(" or ")))
            }
            ("ne" | "lt" | "le" | "gt" | "ge", [_, _]) => {
                let operators = [("ne", " != "), ("lt", " < "), ("le", " <= "), ("gt", " > "), ("ge", " >= ")];
                infix(operators.iter().find(|(word, _)| word == name)?.1)
            }
            ("not", [value]) => Some(format!("(not {value})")),
            ("len", [value]) => Some(format!("(({value} or []) | length)")),
            ("slice", [value, from]) => Some(format!("{value}[{from}:]")),
            ("slice", [value, from, to]) => Some(format!("{value}[{from}:{to}]")),
            ("index", [value, at]) => Some(format!("{value}[{at}]")),
            ("json", [value]) => Some(format!("({value} | tojson(separators=(',', ':')))")),
            ("currentDate", []) => Some("strftime_now('%Y-%m-%d')".to_string()),
            _ => None,
        }
    }

    fn operand(&self, rest: &mut &[Word]) -> Option<String> {
        let (first, after) = rest.split_first()?;
        *rest = after;
        match first {
            Word::Text(text) => Some(literal(text)),
            Word::Number(number) => Some(number.clone()),
            Word::Name(name) if name == "true" || name == "false" => Some(name.clone()),
            Word::Name(name) if name == "nil" => Some("none".to_string()),
            Word::Field(path) => match self.dots.last() {
                None => root(path),
                Some(dot) => field(dot, path),
            },
            Word::Variable(path) => match path.split_once('.') {
                None if path.is_empty() => None,
                None => Some(format!("ns.v_{path}")),
                Some(("", path)) => root(path),
                Some((name, path)) => field(&format!("ns.v_{name}"), path),
            },
            Word::Open => {
                let value = self.call(rest)?;
                let [Word::Close, after @ ..] = *rest else { return None };
                *rest = after;
                Some(value)
            }
            _ => None,
        }
    }
}

/// How deep parentheses stand within each other.
fn deepest(words: &[Word]) -> usize {
    let mut level = 0_usize;
    let levels = words.iter().map(|word| {
        match word {
            Word::Open => level += 1,
            Word::Close => level = level.saturating_sub(1),
            _ => {}
        }
        level
    });
    levels.max().unwrap_or(0)
}

/// What Ollama gives every template.
fn root(path: &str) -> Option<String> {
    let value = match path {
        "Messages" => "messages",
        "Tools" => "tools",
        "System" => "ns.System",
        "Prompt" => "ns.Prompt",
        "Response" => "ns.Response",
        "Think" => "enable_thinking",
        "IsThinkSet" => "(enable_thinking is defined)",
        "Suffix" | "ThinkLevel" | "Thinking" => "''",
        _ => return None,
    };
    Some(value.to_string())
}

/// A field of a message, a call or a tool.
fn field(of: &str, path: &str) -> Option<String> {
    let mut value = of.to_string();
    for name in path.split('.').filter(|name| !name.is_empty()) {
        value.push_str(match name {
            "Role" => ".role",
            "Content" => ".content",
            "Thinking" => ".reasoning_content",
            "ToolCalls" => ".tool_calls",
            "ToolName" | "Name" => ".name",
            "Type" => ".type",
            "Function" => ".function",
            "Arguments" => ".arguments",
            "Description" => ".description",
            "Parameters" => ".parameters",
            _ => return None,
        });
    }
    Some(value)
}

fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
