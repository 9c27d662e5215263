//! Errors as objects: `code` is stable, `message` is for people, and some have more fields.

use crate::json;
use model::chat::ChatError;
use serde_json::{Map, Value, json};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    pub fn print(text: &str);
}

/// An error that JavaScript gets.
#[derive(Debug)]
pub struct Failure {
    code: &'static str,
    message: String,
    fields: Map<String, Value>,
    /// The error of JavaScript's side that caused it, which is passed on as it is.
    thrown: Option<JsValue>,
}

impl Failure {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), fields: Map::new(), thrown: None }
    }

    /// An option with a value that it cannot have.
    pub fn unknown(option: &str, value: &str, known: &[&str]) -> Self {
        let message = format!("{option}: \"{}\" is none of {}", value.escape_debug(), known.join(", "));
        Self::new("bad-options", message)
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(key.to_string(), value.into());
        self
    }

    /// The error that JavaScript threw in the middle of a call.
    pub fn thrown(self, thrown: Option<JsValue>) -> Self {
        Self { thrown, ..self }
    }

    pub fn aborted() -> Self {
        Self::new("aborted", "the call was cancelled")
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        if let Some(thrown) = failure.thrown {
            return thrown;
        }
        let mut object = failure.fields;
        object.insert("code".to_string(), json!(failure.code));
        object.insert("message".to_string(), json!(failure.message));
        json::write(&object)
    }
}

impl From<gguf::Error> for Failure {
    fn from(error: gguf::Error) -> Self {
        let code = match &error {
            gguf::Error::Magic { .. } => "not-gguf",
            gguf::Error::Truncated { .. } | gguf::Error::OutOfFile { .. } => "truncated",
            gguf::Error::Read { .. } | gguf::Error::ReadTensor { .. } => "read",
            gguf::Error::OutOfMemory { .. } => "no-memory",
            _ => "bad-file",
        };
        let message = error.to_string();
        // The errors of a file are facts about it.
        let has_way = !matches!(code, "truncated" | "bad-file") || message.contains(" again");
        Self::new(code, if has_way { message } else { format!("{message}; get the file again, or choose another one") })
    }
}

impl From<kernels::Error> for Failure {
    fn from(error: kernels::Error) -> Self {
        let code = match error {
            kernels::Error::Read(error) => return error.into(),
            kernels::Error::Cancelled => return Self::aborted(),
            kernels::Error::NoAdapter { .. } | kernels::Error::NoDevice { .. } => "no-webgpu",
            kernels::Error::DeviceLost { .. } => "device-lost",
            kernels::Error::OutOfMemory { .. } | kernels::Error::BindingTooLarge { .. } => "no-memory",
            kernels::Error::ContextOverflow { .. } => "context",
            kernels::Error::Format { .. } => "unsupported",
            _ => "internal",
        };
        Self::new(code, error.to_string())
    }
}

impl From<model::Error> for Failure {
    fn from(error: model::Error) -> Self {
        use model::Error;
        let message = error.to_string();
        let code = match error {
            Error::File(error) => return error.into(),
            Error::Kernels(error) => return error.into(),
            Error::Cancelled => return Self::aborted(),
            Error::Architecture { name, .. } => {
                return Self::new("unsupported", message).with("architecture", name);
            }
            Error::TooLarge { needed, available, .. } => {
                return Self::new("no-memory", message).with("needed", needed.0).with("available", available.0);
            }
            Error::CacheTooLarge { .. } => "no-memory",
            Error::Context { limit, .. } => return Self::new("bad-options", message).with("limit", limit),
            Error::ContextOverflow { needed, limit } => {
                return Self::new("context", message).with("needed", needed).with("limit", limit);
            }
            Error::TokenId { .. } | Error::NothingFed | Error::Tap { .. } => "bad-options",
            Error::Snapshot(_) | Error::OtherModel => "snapshot",
            Error::Chat(ChatError::Syntax { .. } | ChatError::Render { .. }) if !message.contains("raw text") => {
                let way = "complete raw text with `session.complete`, or take a file with another template";
                return Self::new("template", format!("{message}; {way}"));
            }
            Error::Chat(_) => "template",
            Error::Adapter(_) => "adapter",
            Error::NonFinite { .. } => "not-finite",
            Error::RopeScaling { .. } => "unsupported",
            _ => "bad-file",
        };
        Self::new(code, message)
    }
}

impl From<train::Error> for Failure {
    fn from(error: train::Error) -> Self {
        let message = error.to_string();
        match error {
            train::Error::Kernels(error) => error.into(),
            train::Error::Model(error) => error.into(),
            train::Error::Checkpoint { .. } => Self::new("checkpoint", message),
            train::Error::Data { line, .. } => Self::new("train", message).with("line", line),
            _ => Self::new("train", message),
        }
    }
}
