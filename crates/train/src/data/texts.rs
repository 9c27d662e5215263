//! How text becomes ids: a tokenizer, a chat template, and what the template is told.

use super::line::Conversation;
use super::marked::Marked;
use super::message::Turn;
use super::options::{DataOptions, Learn};
use crate::hex::hex;
use model::chat::{ChatTemplate, Message, RenderOptions};
use model::tokenizer::{Special, Tokenizer};
use model::{Model, ModelFile};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// How the texts of examples become ids: as `weft run` renders its prompts for this model.
#[derive(Clone)]
pub struct Texts {
    pub(super) tokenizer: Arc<Tokenizer>,
    /// Absent if prompts stand as they are.
    pub(super) template: Option<ChatTemplate>,
    pub(super) render: RenderOptions,
}

impl From<&ModelFile> for Texts {
    fn from(file: &ModelFile) -> Self {
        Self::new(file.tokenizer().clone(), file.template().clone())
    }
}

impl From<&Model> for Texts {
    fn from(model: &Model) -> Self {
        Self::new(model.tokenizer().clone(), model.template().clone())
    }
}

impl Texts {
    /// Makes ids by a tokenizer. Prompts and conversations are rendered by a chat template.
    #[must_use]
    pub fn new(tokenizer: Arc<Tokenizer>, template: ChatTemplate) -> Self {
        Self { tokenizer, template: Some(template), render: RenderOptions::default() }
    }

    /// Leaves out the chat template, as `weft run --raw` does. A prompt and its completion are then
    /// one text, and conversations are refused.
    #[must_use]
    pub fn raw(self) -> Self {
        Self { template: None, ..self }
    }

    /// Sets variables of the chat template, such as `enable_thinking`. The `tools` of an example
    /// replace `tools` that are set here.
    #[must_use]
    pub fn render(self, render: RenderOptions) -> Self {
        Self { render, ..self }
    }

    /// The tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    /// The chat template, if one is used.
    #[must_use]
    pub fn template(&self) -> Option<&ChatTemplate> {
        self.template.as_ref()
    }

    /// What renderings depend on besides the tokenizer.
    pub(super) fn fact(&self) -> String {
        let source = self.template.as_ref().map_or("none", ChatTemplate::source);
        let digest = hex(&Sha256::digest(format!("{source} {:?}", self.render)));
        format!("chat template and its options {}", &digest[..16])
    }
}

impl Texts {
    /// A text, all of it learnt, with the token that ends texts if the text `ends` without one.
    pub(super) fn text(&self, text: &str, ends: bool) -> Result<Marked, String> {
        let mut marked = Marked::default();
        marked.extend(&self.tokenizer.encode_prompt(text, Special::Parse).map_err(reason)?, 1.0);
        if ends && !text.is_empty() {
            self.end(&mut marked);
        }
        Ok(marked)
    }

    fn end(&self, marked: &mut Marked) {
        let ended = marked.ids.last().is_some_and(|&id| self.tokenizer.is_end(id));
        marked.extend(self.tokenizer.eos().filter(|_| !ended).as_slice(), 1.0);
    }

    /// An answer to a prompt, without a template.
    pub(super) fn completion(&self, prompt: &str, completion: &str) -> Result<Marked, String> {
        let mut marked = Marked::default();
        marked.extend(&self.tokenizer.encode_prompt(prompt, Special::Parse).map_err(reason)?, 0.0);
        marked.extend(&self.tokenizer.encode(completion, Special::Parse).map_err(reason)?, 1.0);
        self.end(&mut marked);
        Ok(marked)
    }

    /// The turns of the assistant, each behind the prompt that `weft run` has for it. A turn
    /// continues the document of the turns before it if its prompt begins with what is learnt
    /// there; where the template renders earlier turns otherwise later on, it begins another one. A
    /// prompt that is too long is the last one that is rendered.
    pub(super) fn conversation(
        &self,
        conversation: &Conversation,
        options: &DataOptions,
    ) -> Result<Vec<Marked>, String> {
        let template = self.template.as_ref().ok_or("messages need a chat template, but none is used")?;
        let Conversation { turns, render } = conversation;
        check(turns, options)?;
        let messages: Vec<Message> = turns.iter().map(|turn| turn.message.clone()).collect();
        if options.learn == Learn::All {
            let render = render.clone().add_generation_prompt(false);
            let mut marked = Marked::default();
            marked.extend(&template.encode(&self.tokenizer, &messages, &render).map_err(reason)?, 1.0);
            return Ok(vec![marked]);
        }
        let mut documents: Vec<Marked> = vec![];
        for n in (0..turns.len()).filter(|&n| turns[n].is_learnt()) {
            let (prompt, rest) = template.encode_answer(&self.tokenizer, &messages[..=n], render).map_err(reason)?;
            documents.last_mut().into_iter().for_each(Marked::trim);
            let before = documents.pop_if(|before| prompt.starts_with(&before.ids));
            let mut document = before.unwrap_or_default();
            self.turn(&mut document, &prompt, &rest, turns[n].weight);
            documents.push(document);
            if prompt.len() > options.length as usize {
                break;
            }
        }
        Ok(documents)
    }

    /// Adds a turn to a document that ends with what is learnt: the turn is learnt up to the token
    /// that ends it.
    fn turn(&self, document: &mut Marked, prompt: &[u32], rest: &[u32], weight: f32) {
        let (known, is_end) = (document.ids.len(), |id: &u32| self.tokenizer.is_end(*id));
        let last = document.ids.last().copied().zip(document.weights.last().copied());
        // A turn without an end, such as a call of a tool, ends with the first token behind it.
        let ends = last.filter(|(id, _)| !is_end(id) && prompt.get(known).is_some_and(is_end));
        document.extend(&prompt[known..], 0.0);
        if let Some((_, weight)) = ends {
            document.weights[known] = weight;
        }
        let learnt = rest.iter().position(is_end).map_or(rest.len(), |end| end + 1);
        document.extend(&rest[..learnt], weight);
        document.extend(&rest[learnt..], 0.0);
    }
}

/// Refuses turns of which nothing can be learnt.
fn check(turns: &[Turn], options: &DataOptions) -> Result<(), String> {
    if !turns.iter().any(Turn::is_assistant) {
        return Err("nothing to learn: no message has the role assistant".to_string());
    }
    if let Some(n) = turns.iter().position(|turn| turn.is_learnt() && turn.is_empty()) {
        return Err(format!("message {}: nothing to learn: the turn of the assistant is empty", n + 1));
    }
    match options.learn {
        Learn::Completions if !turns.iter().any(Turn::is_learnt) => {
            Err("nothing to learn: no turn of the assistant has a weight above 0".to_string())
        }
        Learn::All if turns.iter().any(|turn| turn.is_assistant() && turn.weight != 1.0) => {
            Err("a turn has a weight, but prompts are learnt, too; learn completions only, or leave the weight out"
                .to_string())
        }
        _ => Ok(()),
    }
}

fn reason(error: impl std::fmt::Display) -> String {
    error.to_string()
}
