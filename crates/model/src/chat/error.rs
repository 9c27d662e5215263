//! What can go wrong between a conversation and its prompt.

use std::fmt;

use super::limits::{Exceeded, TOO_SLOW};

/// Characters of a template's own words at most.
const MOST_OF_REASON: usize = 2000;

/// What remains when a template is refused.
pub(super) const WAY_OUT: &str = "complete raw text, or take a file with another template";

/// Why a template could not be compiled or rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The file's template has the wrong type.
    #[error("{reason}")]
    Metadata {
        /// The container's own words.
        reason: String,
    },
    /// The template is no Jinja that we can read.
    #[error("tokenizer.chat_template, line {line}: {reason}")]
    Syntax {
        /// Line in the template, from 1; 0 where unknown.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The template refused the conversation, in its own words.
    #[error("the chat template refuses these messages: {message}")]
    Refused {
        /// What it says.
        message: String,
    },
    /// The template failed on the conversation.
    #[error("the chat template failed at line {line}: {reason}")]
    Render {
        /// Line in the template, from 1; 0 where unknown.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The template takes more than templates may.
    #[error("the chat template takes more than {limit}; {WAY_OUT}")]
    Limit {
        /// The limit.
        limit: &'static str,
    },
    /// The template uses what cannot be bounded.
    #[error("the chat template uses {what}, which is refused; {WAY_OUT}")]
    Unbounded {
        /// What it uses.
        what: &'static str,
    },
    /// The template drops a part of the conversation in every form that it can be given.
    #[error(
        "the chat template does not show {what}; leave it out, or take a file with another \
         template"
    )]
    Unshown {
        /// The part, the call or the tool.
        what: String,
    },
    /// The template needs the arguments of a call as an object, and the text is none.
    #[error(
        "the arguments of the call of {name} are no JSON object, which the chat template needs: \
         {reason}"
    )]
    Arguments {
        /// The called function.
        name: String,
        /// What is wrong with the text.
        reason: String,
    },
    /// The vocabulary lacks a byte of the prompt.
    #[error(transparent)]
    Tokenizer(#[from] crate::tokenizer::TokenizerError),
    /// The messages cannot be handed to a template.
    #[error("the messages cannot be handed to the chat template: {0}")]
    Json(#[from] serde_json::Error),
    /// The template renders an answer otherwise than behind its prompt.
    #[error(
        "the chat template does not render this answer behind the prompt for it, so that a model \
         never learns to give it; use a text that is already rendered"
    )]
    NoPrompt,
    /// The messages use up every private character, so that none is left to keep them apart from
    /// control tokens.
    #[error("the messages use every private character from U+F0000 to U+FFFFD; leave some out")]
    NoPrivateCharacter,
}

/// What `raise_exception` was called with; travels inside minijinja's error.
#[derive(Debug)]
pub(super) struct Raised(pub String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

impl ChatError {
    /// Whether a prompt of raw text would avoid the error: the template itself is refused.
    #[must_use]
    pub fn raw_text_helps(&self) -> bool {
        match self {
            Self::Limit { .. } | Self::Unbounded { .. } => true,
            Self::Render { reason, .. } => reason.ends_with(WAY_OUT),
            _ => false,
        }
    }

    pub(super) fn from_template(error: minijinja::Error) -> Self {
        if error.kind() == minijinja::ErrorKind::OutOfFuel {
            return ChatError::from(TOO_SLOW);
        }
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            if let Some(Raised(message)) = inner.downcast_ref() {
                return ChatError::Refused { message: shortened(message) };
            }
            if let Some(exceeded) = inner.downcast_ref::<Exceeded>() {
                return ChatError::from(*exceeded);
            }
            cause = inner.source();
        }
        ChatError::Render { line: error.line().unwrap_or(0), reason: reason(&error) }
    }

    pub(super) fn from_syntax(error: minijinja::Error) -> Self {
        ChatError::Syntax { line: error.line().unwrap_or(0), reason: reason(&error) }
    }
}

fn reason(error: &minijinja::Error) -> String {
    let kind = error.kind().to_string();
    error.detail().map_or_else(|| kind.clone(), |detail| shortened(&format!("{kind}: {detail}")))
}

/// The beginning of what a template says: templates may quote whole conversations.
fn shortened(text: &str) -> String {
    text.char_indices().nth(MOST_OF_REASON).map_or_else(|| text.to_owned(), |(end, _)| format!("{}..", &text[..end]))
}
