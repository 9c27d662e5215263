//! An opened file: its metadata, tokenizer and chat template. No weights are loaded.

use crate::chat::ChatTemplate;
use crate::error::Error;
use crate::note::Note;
use crate::tokenizer::Tokenizer;
use gguf::Gguf;
use std::path::Path;
use std::sync::Arc;

/// An opened file with its tokenizer and chat template. No weights are loaded yet.
pub struct ModelFile {
    pub(crate) file: Arc<Gguf>,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: ChatTemplate,
    pub(crate) notes: Vec<Note>,
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
    /// A broken tokenizer; with the feature `gpu`, an architecture that this version does not run.
    /// The template is compiled when something is to be rendered.
    pub fn new(file: Gguf) -> Result<Self, Error> {
        #[cfg(feature = "gpu")]
        let (architecture, _) = crate::arch::find(&file)?;
        let tokenizer = Arc::new(Tokenizer::from_gguf(&file)?);
        let template = ChatTemplate::from_gguf(&file, &tokenizer);
        let mut notes = tokenizer.notes().to_vec();
        // A number out of range is an error when the hyper-parameters are read.
        #[cfg(feature = "gpu")]
        notes.extend(crate::meta::Meta { file: &file, architecture }.context_note().unwrap_or_default());
        notes.shrink_to_fit();
        Ok(Self { file: Arc::new(file), tokenizer, template, notes })
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

    /// Replaces the chat template with this Jinja source, for files that have no template.
    #[must_use]
    pub fn with_template(self, source: &str) -> Self {
        let template = ChatTemplate::new(source, &self.tokenizer);
        Self { template, ..self }
    }
}
