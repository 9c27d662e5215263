//! A line of JSON: what it has is told by its keys.

use super::ids;
use super::json::{filled, object, parsed, short};
use super::keys::Role;
use super::message::{KEYS, Messages, Turn, tools};
use crate::batch::Document;
use model::chat::{ChatTemplate, Message, RenderOptions};
use serde_json::{Map, Value};

/// What a line has.
pub(super) enum Line {
    Ids(Document),
    Conversation(Conversation),
    Completion { prompt: String, completion: String },
    Text(String),
}

/// A conversation and how to render it.
pub(super) struct Conversation {
    pub turns: Vec<Turn>,
    pub render: RenderOptions,
}

/// The columns of a form.
struct Form {
    /// Columns that make the form, if all of them are there.
    keys: &'static [&'static str],
    /// Columns that may be there, too.
    more: &'static [&'static str],
}

/// Columns beside the messages of a conversation.
const BESIDE: &[&str] = &["system", "tools", "functions", "enable_thinking", "chat_template_kwargs", "mask"];

static FORMS: [Form; 7] = [
    Form { keys: &["ids"], more: &["targets", "weights"] },
    Form { keys: &["messages"], more: BESIDE },
    Form { keys: &["conversations"], more: BESIDE },
    Form { keys: &["conversation"], more: BESIDE },
    Form { keys: &["prompt", "completion"], more: BESIDE },
    Form { keys: &["instruction", "output"], more: &["input", "system"] },
    Form { keys: &["text"], more: &[] },
];

/// Columns that change what should be learnt, and why they are refused.
const REFUSED: [(&str, &str); 9] = [
    ("chosen", PREFERENCES),
    ("rejected", PREFERENCES),
    ("history", "earlier turns have the form of messages here"),
    ("audio", ONLY_TEXT),
    ("audios", ONLY_TEXT),
    ("image", ONLY_TEXT),
    ("images", ONLY_TEXT),
    ("video", ONLY_TEXT),
    ("videos", ONLY_TEXT),
];
const ONLY_TEXT: &str = "only text is learnt";
const PREFERENCES: &str = "preferences are not learnt (no DPO); give chosen as completion, and leave rejected out";
const LABEL: &str = "it has label, but whether a completion is good is not learnt; give the good ones without it";

/// The columns of a line that have a value.
struct Columns<'a> {
    object: Map<String, Value>,
    render: RenderOptions,
    template: Option<&'a ChatTemplate>,
    unused: &'a mut Vec<String>,
}

impl Line {
    /// Reads a line for a template. Names of columns and keys that have no effect are added to
    /// `unused`. The error is the reason why the line cannot be used.
    pub fn read(
        bytes: &[u8],
        template: Option<&ChatTemplate>,
        render: &RenderOptions,
        unused: &mut Vec<String>,
    ) -> Result<Self, String> {
        let mut object = object(bytes)?;
        object.retain(|_, value| !value.is_null());
        let form = form(&object)?;
        unused
            .extend(object.keys().filter(|key| !form.keys.iter().chain(form.more).any(|known| known == key)).cloned());
        Columns { object, render: render.clone(), template, unused }.line(form.keys[0])
    }
}

/// The form of an object.
fn form(object: &Map<String, Value>) -> Result<&'static Form, String> {
    let has = |key: &&str| object.contains_key(*key);
    let whole = FORMS.iter().find(|form| form.keys.iter().all(has));
    // Ids and whole texts say themselves what is learnt.
    if !whole.is_some_and(|form| ["ids", "text"].contains(&form.keys[0])) {
        if let Some((key, why)) = REFUSED.iter().find(|(key, _)| object.get(*key).is_some_and(filled)) {
            return Err(format!("it has {key}, but {why}"));
        }
        // What another type of label means is not known: such a label is a further column.
        if has(&"prompt") && object.get("label").is_some_and(Value::is_boolean) {
            return Err(LABEL.to_string());
        }
    }
    whole.ok_or_else(|| match FORMS.iter().find(|form| has(&form.keys[0])) {
        Some(form) => format!("it has no {}", form.keys[1]),
        None => "it has none of the keys ids, messages, conversations, prompt, instruction, text".to_string(),
    })
}

impl Columns<'_> {
    fn line(mut self, first: &str) -> Result<Line, String> {
        Ok(match first {
            "ids" => Line::Ids(ids::document(&self.object)?),
            "text" => Line::Text(self.text("text")?),
            "prompt" if is_list(&self.object["prompt"]) => {
                let mut turns = self.turns("prompt")?;
                turns.iter_mut().for_each(|turn| turn.is_prompt = true);
                let completion = match is_list(&self.object["completion"]) {
                    true => self.turns("completion")?,
                    false => vec![Turn::new(Message::assistant(self.text("completion")?))],
                };
                turns.extend(completion);
                self.conversation(turns)?
            }
            "prompt" => {
                let prompt = self.text("prompt")?;
                self.completion(prompt, "completion")?
            }
            "instruction" => {
                let mut prompt = self.text("instruction")?;
                // Alpaca's input is what the instruction is about.
                if self.object.get("input").is_some_and(filled) {
                    prompt = format!("{prompt}\n\n{}", self.text("input")?);
                }
                self.completion(prompt, "output")?
            }
            messages => {
                let turns = self.turns(messages)?;
                self.conversation(turns)?
            }
        })
    }

    fn text(&self, key: &str) -> Result<String, String> {
        match &self.object[key] {
            Value::String(text) => Ok(text.clone()),
            other => Err(format!("{key} is {}, not a text", short(other))),
        }
    }

    fn turns(&mut self, key: &str) -> Result<Vec<Turn>, String> {
        let template = self.template.ok_or("messages need a chat template, but none is used")?;
        Messages { template, unused: self.unused }.read(key, &self.object[key])
    }

    /// An answer to a prompt. Only a template can show what else is there.
    fn completion(self, prompt: String, answer: &str) -> Result<Line, String> {
        let completion = self.text(answer)?;
        if completion.is_empty() {
            return Err("nothing to learn: the completion is empty".to_string());
        }
        match self.template {
            None => match BESIDE.iter().find(|key| self.object.get(**key).is_some_and(filled)) {
                Some(key) => Err(format!("{key} needs a chat template, but none is used")),
                None => Ok(Line::Completion { prompt, completion }),
            },
            Some(_) => {
                self.conversation(vec![Turn::new(Message::user(prompt)), Turn::new(Message::assistant(completion))])
            }
        }
    }

    /// A conversation with what stands beside its messages.
    fn conversation(mut self, mut turns: Vec<Turn>) -> Result<Line, String> {
        if self.object.get("system").is_some_and(filled) {
            if turns.first().is_some_and(|turn| turn.message.role == "system") {
                return Err("it has a column system, and a message of the system".to_string());
            }
            turns.insert(0, Turn::new(Message::system(self.text("system")?)));
        }
        for (key, framed) in [("tools", true), ("functions", false)] {
            if let Some(value) = self.object.get(key) {
                self.render.tools = Some(tools(value, framed)?);
            }
        }
        self.check_mask()?;
        self.variables()?;
        Ok(Line::Conversation(Conversation { turns, render: self.render }))
    }

    /// Variables of the template. Variables that the template does not look at are noted.
    fn variables(&mut self) -> Result<(), String> {
        let source = self.template.map_or("", ChatTemplate::source);
        if let Some(value) = self.object.get("chat_template_kwargs") {
            let value = parsed(value);
            let Some(variables) = value.as_object().filter(|variables| variables.len() <= KEYS) else {
                return Err(format!("chat_template_kwargs is {}, not an object of at most {KEYS} keys", short(&value)));
            };
            let ignored = variables.keys().filter(|key| !source.contains(key.as_str()));
            self.unused.extend(ignored.map(|key| format!("{key} of chat_template_kwargs")));
            self.render.extra.extend(variables.clone());
        }
        if let Some(value) = self.object.get("enable_thinking") {
            let thinking =
                value.as_bool().ok_or_else(|| format!("enable_thinking is {}, not true or false", short(value)))?;
            self.render.enable_thinking = Some(thinking);
            if !source.contains("enable_thinking") {
                self.unused.push("enable_thinking".to_string());
            }
        }
        Ok(())
    }

    /// NeMo's `mask` names the roles that are not learnt: here all but the assistant.
    fn check_mask(&self) -> Result<(), String> {
        let Some(mask) = self.object.get("mask") else { return Ok(()) };
        let is_other = |name: &Value| {
            name.as_str()
                .and_then(Role::of)
                .is_some_and(|role| matches!(role, Role::Named(name) if name != "assistant"))
        };
        let good = match mask {
            Value::Array(names) => names.iter().all(is_other),
            name => is_other(name),
        };
        if good {
            Ok(())
        } else {
            Err(format!("mask is {}, but the turns of the assistant are learnt, and no others", short(mask)))
        }
    }
}

/// Whether a value is a list of messages.
fn is_list(value: &Value) -> bool {
    let messages = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_object));
    messages(value) && value.as_array().is_some_and(|list| !list.is_empty())
}
