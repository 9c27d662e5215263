//! Keys of messages, by the meaning that common formats give them.

/// What a key of a message means.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Who speaks.
    Role,
    /// What is said.
    Content,
    /// What the assistant thought before the answer. The chat template gets it under the name that
    /// the template looks at, and must look at one.
    Thinking,
    /// Calls of tools.
    Calls,
    /// One call, in the form that OpenAI had before `tool_calls`.
    Call,
    /// The factor on the loss of the turn; 0 for a turn that is not learnt.
    Weight,
    /// Whether the turn is learnt.
    Learnt,
    /// What the chat template must show, because it is a part of what is said.
    Shown,
    /// Ids that link calls and results. The order of the messages links them, too.
    Link,
    /// Refused, unless it is empty.
    Refused(&'static str),
    /// The chat template gets it. It is noted if the template does not look at it.
    Unknown,
}

const ONLY_TEXT: &str = "only text is learnt";
const PARTS: &str = "a turn is learnt whole or not at all; divide the turn, or leave the key out";
const BEGUN: &str = "an answer that was begun for the model has no form here; put the whole answer into content";
const ATTRIBUTES: &str = "attributes in the prompt have no form here; write them into the text, or leave the key out";

/// Every key that a common format gives a meaning to.
const KEYS: &[(&str, Meaning)] = &[
    // OpenAI, Hugging Face, TRL, verl; ShareGPT, axolotl, LLaMA-Factory, NeMo.
    ("role", Meaning::Role),
    ("from", Meaning::Role),
    ("content", Meaning::Content),
    ("value", Meaning::Content),
    // DeepSeek and Qwen; OpenRouter, vLLM and Gemma; gpt-oss.
    ("reasoning_content", Meaning::Thinking),
    ("reasoning", Meaning::Thinking),
    ("thinking", Meaning::Thinking),
    ("tool_calls", Meaning::Calls),
    ("function_call", Meaning::Call),
    // OpenAI's fine-tuning and axolotl; axolotl; ms-swift.
    ("weight", Meaning::Weight),
    ("train", Meaning::Learnt),
    ("training", Meaning::Learnt),
    ("loss", Meaning::Learnt),
    ("train_detail", Meaning::Refused(PARTS)),
    ("training_detail", Meaning::Refused(PARTS)),
    ("loss_mask", Meaning::Refused(PARTS)),
    ("name", Meaning::Shown),
    ("tool_plan", Meaning::Shown),
    ("citations", Meaning::Shown),
    ("channel", Meaning::Shown),
    ("recipient", Meaning::Shown),
    ("tool_responses", Meaning::Shown),
    ("tool_call_id", Meaning::Link),
    ("id", Meaning::Link),
    ("refusal", Meaning::Refused("write it into content, so that it is an answer")),
    ("audio", Meaning::Refused(ONLY_TEXT)),
    ("image", Meaning::Refused(ONLY_TEXT)),
    ("images", Meaning::Refused(ONLY_TEXT)),
    ("video", Meaning::Refused(ONLY_TEXT)),
    ("videos", Meaning::Refused(ONLY_TEXT)),
    // Mistral and DeepSeek; Qwen.
    ("prefix", Meaning::Refused(BEGUN)),
    ("partial", Meaning::Refused(BEGUN)),
    // NeMo.
    ("label", Meaning::Refused(ATTRIBUTES)),
    ("canonical_form", Meaning::Refused(ATTRIBUTES)),
];

impl Meaning {
    pub fn of(key: &str) -> Self {
        KEYS.iter().find(|(name, _)| *name == key).map_or(Self::Unknown, |(_, meaning)| *meaning)
    }

    /// The keys with this meaning, the usual one first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        KEYS.iter().filter(move |(_, meaning)| *meaning == self).map(|(name, _)| *name)
    }
}

/// The roles, by every name that they commonly have.
const ROLES: &[(&str, Role)] = &[
    ("system", Role::Named("system")),
    ("user", Role::Named("user")),
    ("human", Role::Named("user")),
    ("assistant", Role::Named("assistant")),
    ("gpt", Role::Named("assistant")),
    ("chatgpt", Role::Named("assistant")),
    ("model", Role::Named("assistant")),
    ("tool", Role::Named("tool")),
    ("function", Role::Named("tool")),
    ("observation", Role::Named("tool")),
    ("tool_response", Role::Named("tool")),
    ("function_response", Role::Named("tool")),
    ("ipython", Role::Named("tool")),
    ("developer", Role::Developer),
    ("function_call", Role::Caller),
    ("tool_call", Role::Caller),
];

/// Who speaks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// One of the roles that templates know.
    Named(&'static str),
    /// OpenAI's name for the system. It stays where the template knows it.
    Developer,
    /// The assistant, with a call as JSON in place of text.
    Caller,
}

impl Role {
    pub fn of(name: &str) -> Option<Self> {
        ROLES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, role)| *role)
    }
}

/// Whether a template's text has a word.
pub(super) fn has_word(source: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    source
        .match_indices(word)
        .any(|(at, _)| !source[..at].ends_with(part) && !source[at + word.len()..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_stands_in_the_table_once() {
        for (n, (key, _)) in KEYS.iter().enumerate() {
            assert!(KEYS[..n].iter().all(|(other, _)| other != key), "{key}");
        }
    }

    #[test]
    fn a_word_is_no_part_of_a_longer_one() {
        assert!(has_word("{{ message.thinking }}", "thinking") && has_word("message['name']", "name"));
        assert!(
            !has_word("{% if enable_thinking %}", "thinking") && !has_word("names", "name") && !has_word("", "name")
        );
    }
}
