//! An opened file: its metadata, tokenizer and chat template. No weights are loaded.

use crate::base::Base;
use crate::chat::ChatTemplate;
use crate::error::Error;
use crate::note::Note;
use crate::tokenizer::Tokenizer;
use gguf::Gguf;
use std::path::Path;
use std::sync::Arc;

/// An opened file with its tokenizer and chat template. No weights are loaded yet. Clones share the
/// file.
#[derive(Clone)]
pub struct ModelFile {
    pub(crate) file: Arc<Gguf>,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: ChatTemplate,
    pub(crate) notes: Vec<Note>,
    pub(crate) base: Base,
}

impl ModelFile {
    /// Opens a GGUF file and, if it is split, its other parts. The file is read, not mapped: call
    /// [`Gguf::open_with`] and [`ModelFile::new`] to map it.
    ///
    /// # Errors
    /// As [`ModelFile::new`], and for files that cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::new(Gguf::open(path)?)
    }

    /// Reads the tokenizer and the chat template of an open GGUF file.
    ///
    /// # Errors
    /// A broken tokenizer. The template is compiled when something is to be rendered.
    #[cfg(not(feature = "gpu"))]
    pub fn new(file: Gguf) -> Result<Self, Error> {
        Self::read(file)
    }

    /// A file whose architecture the caller has checked, if it is to run.
    pub(crate) fn read(file: Gguf) -> Result<Self, Error> {
        let tokenizer = Arc::new(Tokenizer::from_gguf(&file)?);
        let template = ChatTemplate::from_gguf(&file, &tokenizer);
        let notes = tokenizer.notes().to_vec();
        Ok(Self { file: Arc::new(file), tokenizer, template, notes, base: Base::default() })
    }

    /// The GGUF file.
    #[must_use]
    pub fn file(&self) -> &Gguf {
        &self.file
    }

    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.tokenizer
    }

    #[must_use]
    pub fn template(&self) -> &ChatTemplate {
        &self.template
    }

    /// The assumptions that were made to load the file.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The types that the weights of the linear layers get.
    #[must_use]
    pub fn base(&self) -> Base {
        self.base
    }

    /// Chooses the types that the weights of the linear layers get. Checks of the file, its needs
    /// of memory and its digest are those of this choice.
    #[must_use]
    pub fn with_base(self, base: Base) -> Self {
        Self { base, ..self }
    }

    /// Takes the chat template that the file has under `tokenizer.chat_template.NAME`; `None` if it
    /// has none. [`ChatTemplate::names`] lists the names.
    #[must_use]
    pub fn with_named_template(self, name: &str) -> Option<Self> {
        let template = self.template.named(name)?.clone();
        Some(Self { template, ..self })
    }

    /// Replaces the chat template with this Jinja source, for files that have no template.
    #[must_use]
    pub fn with_template(self, source: &str) -> Self {
        let template = ChatTemplate::new(source, &self.tokenizer);
        Self { template, ..self }
    }
}
