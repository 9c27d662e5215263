//! An answer behind its prompt, as training sees both.

use super::guard::Guard;
use super::{ChatError, ChatTemplate, Message, RenderOptions};
use crate::tokenizer::Tokenizer;
use serde_json::Value;

impl ChatTemplate {
    /// The last message as the answer to the messages before it: the ids of their prompt, which are
    /// those of [`encode`](Self::encode), and the ids that follow it, up to the end of the
    /// rendering. The prompt ends as for generation, whatever `options` say. If it ends in thinking
    /// that is empty, and the template leaves this out of answers, the answer follows it.
    ///
    /// # Errors
    /// As [`encode`](Self::encode), and [`ChatError::NoPrompt`] if the template renders the answer
    /// otherwise than behind its prompt. No prompt would make a model give this answer.
    ///
    /// # Panics
    /// If there is no message.
    pub fn encode_answer(
        &self,
        tokenizer: &Tokenizer,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<(Vec<u32>, Vec<u32>), ChatError> {
        assert!(!messages.is_empty(), "an answer is a message");
        let template = self.chosen(options);
        let mut values = template.values(messages, &options.clone().add_generation_prompt(false))?;
        let mut guard = Guard::new(tokenizer, &values, template.source());
        guard.protect(&mut values)?;
        let whole = template.render_values(values.clone())?;
        if let Some(Value::Array(messages)) = values.get_mut("messages") {
            messages.pop();
        }
        values.insert("add_generation_prompt".to_owned(), true.into());
        let prompt = template.render_values(values)?;
        let rest = self.behind(&prompt, &whole).ok_or(ChatError::NoPrompt)?;
        let prompt = tokenizer.with_bos(guard.ids(tokenizer, &prompt)?);
        let whole = tokenizer.with_bos(guard.ids(tokenizer, &whole)?);
        // A token across the border is none that a model could write.
        let rest =
            whole.strip_prefix(&prompt[..]).map_or_else(|| guard.ids(tokenizer, rest), |rest| Ok(rest.to_vec()))?;
        Ok((prompt, rest))
    }

    /// What follows the prompt in a rendering that goes on.
    fn behind<'a>(&self, prompt: &str, whole: &'a str) -> Option<&'a str> {
        whole.strip_prefix(prompt).or_else(|| {
            let opened = self.format.without_empty_thinking(prompt)?;
            whole.strip_prefix(opened).filter(|rest| !self.format.opens_thinking(rest))
        })
    }
}
