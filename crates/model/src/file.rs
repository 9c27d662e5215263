//! An opened file: its metadata, tokenizer and chat template. No weights are loaded.

use crate::chat::ChatTemplate;
use crate::error::Error;
use crate::note::Note;
use crate::tokenizer::Tokenizer;
use gguf::{GgmlType, Gguf};
use std::path::Path;
use std::sync::Arc;

/// The types that the weights of the linear layers have in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Base {
    /// The types of the file.
    #[default]
    AsStored,
    /// NF4, made of F16, BF16 or F32 while the weights load: blocks of 64 elements with an f32
    /// absmax, 0.5625 bytes per weight (Dettmers et al. 2023, arXiv 2305.14314). The embedding, the
    /// output matrix, norms and routers keep the types of the file.
    Nf4,
    /// NF4_DQ: the same, with the absmax of each block in 8 bits, 0.53125 bytes per weight (double
    /// quantization, section 3 of the same paper). Rows are multiples of 256.
    Nf4Dq,
}

impl Base {
    /// The type of the matrices that are converted.
    pub(crate) fn ty(self) -> Option<GgmlType> {
        match self {
            Self::AsStored => None,
            Self::Nf4 => Some(GgmlType::NF4),
            Self::Nf4Dq => Some(GgmlType::NF4_DQ),
        }
    }
}

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
