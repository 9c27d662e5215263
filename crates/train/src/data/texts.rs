//! How text becomes ids: a tokenizer, a chat template, and what the template is told.

use model::chat::{ChatTemplate, RenderOptions};
use model::tokenizer::Tokenizer;
use model::{Model, ModelFile};
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
        let (tokenizer, template) = (file.tokenizer().clone(), Some(file.template().clone()));
        Self { tokenizer, template, render: RenderOptions::default() }
    }
}

impl From<&Model> for Texts {
    fn from(model: &Model) -> Self {
        let (tokenizer, template) = (model.tokenizer().clone(), Some(model.template().clone()));
        Self { tokenizer, template, render: RenderOptions::default() }
    }
}

impl Texts {
    /// The same without the chat template, as `weft run --raw`: a prompt and its completion are one
    /// text, and conversations are refused.
    #[must_use]
    pub fn raw(self) -> Self {
        Self { template: None, ..self }
    }

    /// The same with other variables of the chat template, such as `enable_thinking`. `tools` of an
    /// example win.
    #[must_use]
    pub fn render(self, render: RenderOptions) -> Self {
        Self { render, ..self }
    }
}
