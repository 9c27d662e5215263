//! A loaded model.

use crate::adapter::Adapter;
use crate::error::Failure;
use crate::info::{self, Facts};
use crate::json;
use crate::opened::available;
use crate::options::{self, Limits};
use crate::reader::{JsSource, Running};
use crate::session::Session;
use gguf::{Progress, Remote};
use kernels::{Executor, Preparing};
use model::tokenizer::Special;
use serde_json::json;
use std::cell::RefCell;
use train::BaseDigest;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

/// A model with its weights on an executor.
#[wasm_bindgen]
pub struct Model {
    pub(crate) name: String,
    pub(crate) model: model::Model,
    /// The way to the bytes of the file.
    pub(crate) remote: Remote<JsSource>,
    pub(crate) executor: Executor,
    pub(crate) limits: Limits,
    /// The call that reads the file.
    pub(crate) running: Running,
    /// The kernels of the first session, which are compiled meanwhile.
    pub(crate) _compiling: Preparing,
    /// The digest of every byte, once training needs it.
    pub(crate) digest: RefCell<Option<BaseDigest>>,
}

#[wasm_bindgen]
impl Model {
    /// `ModelInfo`.
    pub fn info(&self) -> JsValue {
        let model = &self.model;
        let facts = Facts {
            name: &self.name,
            file: model.file(),
            summary: model.summary(),
            executor: &self.executor,
            digest: model.digest().ok(),
            template: model.template(),
            notes: model.notes(),
        };
        json::write(&facts.info())
    }

    /// `Needs` of a session with these options.
    pub fn needs(&self, options: &JsValue) -> Result<JsValue, Failure> {
        let options = json::read::<options::Session>(options, "options")?.options(&self.limits)?;
        let needs = self.model.to_file().check(&self.executor)?.needs(&options)?;
        Ok(json::write(&info::needs(&needs, available(&self.limits, &self.executor))))
    }

    /// A new conversation.
    pub async fn session(&self, options: JsValue) -> Result<Session, Failure> {
        let options = json::read::<options::Session>(&options, "options")?.options(&self.limits)?;
        if options.sequences != 1 {
            return Err(Failure::new(
                "bad-options",
                "sequences: a session is one sequence; `model.batch` makes several",
            ));
        }
        Ok(Session::new(self.model.session_async(options).await?))
    }

    /// Loads an adapter: PEFT's two files, or a GGUF file, each `{ name, bytes }`.
    pub async fn adapter(&self, files: Vec<JsValue>) -> Result<Adapter, Failure> {
        Adapter::load(&self.model, &files).await
    }

    /// The ids of a text.
    pub fn tokenize(&self, text: &str, options: &JsValue) -> Result<Vec<u32>, Failure> {
        let options: options::Tokenized = json::read(options, "options")?;
        let special = if options.special { Special::Parse } else { Special::Text };
        let tokenizer = self.model.tokenizer();
        let ids = match options.start {
            true => tokenizer.encode_prompt(text, special),
            false => tokenizer.encode(text, special),
        };
        Ok(ids.map_err(model::Error::from)?)
    }

    /// The text of ids.
    pub fn detokenize(&self, ids: &[u32]) -> String {
        self.model.tokenizer().decode(ids)
    }

    /// The prompt of a conversation as text.
    pub fn render(&self, messages: &JsValue, options: &JsValue) -> Result<String, Failure> {
        let options = json::read::<options::Rendered>(options, "options")?.options();
        let text = self.model.template().render(&options::messages(messages)?, &options);
        Ok(text.map_err(model::Error::from)?)
    }

    /// The names of the values that a session can tap.
    pub fn taps(&self) -> Vec<String> {
        self.model.taps().into_iter().map(String::from).collect()
    }

    /// The number of kernels that are compiled, and of all that were asked for: `Compiled`.
    pub fn compiled(&self) -> JsValue {
        let Progress { done, total } = match &self.executor {
            Executor::Gpu(device) => device.compiled(),
            Executor::Cpu => Progress { done: 0, total: 0 },
        };
        json::write(&json!({ "done": done, "total": total }))
    }

    /// Whether the device of this model is lost.
    pub fn lost(&self) -> bool {
        self.executor.is_lost()
    }
}
