//! How examples become documents, and the counts of both.

/// What becomes of a document with more than [`DataOptions::length`] tokens.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Longer {
    /// The tokens behind the limit are left out.
    #[default]
    Cut,
    /// The document is left out.
    Drop,
}

/// The tokens of an example that are learnt.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Learn {
    /// Completions and the turns of the assistant; of a text, all.
    #[default]
    Completions,
    /// All, prompts too.
    All,
}

/// How examples become documents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataOptions {
    /// Tokens of a document at most, at least 1.
    pub length: u32,
    pub longer: Longer,
    pub learn: Learn,
    /// Whether a bad line is counted and left out. Otherwise it is an error.
    pub skip_bad: bool,
}

impl Default for DataOptions {
    fn default() -> Self {
        Self { length: 1024, longer: Longer::Cut, learn: Learn::Completions, skip_bad: false }
    }
}

impl DataOptions {
    /// Tokens of a document at most, at least 1.
    #[must_use]
    pub fn length(self, length: u32) -> Self {
        Self { length: length.max(1), ..self }
    }

    /// What becomes of a longer document.
    #[must_use]
    pub fn longer(self, longer: Longer) -> Self {
        Self { longer, ..self }
    }

    /// The tokens that are learnt.
    #[must_use]
    pub fn learn(self, learn: Learn) -> Self {
        Self { learn, ..self }
    }

    /// Whether a bad line is counted and left out.
    #[must_use]
    pub fn skip_bad(self, skip_bad: bool) -> Self {
        Self { skip_bad, ..self }
    }
}

/// What was read so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Examples that can be learnt.
    pub examples: u64,
    /// Their documents. A conversation has several if the chat template renders earlier turns
    /// otherwise later on.
    pub documents: u64,
    /// The ids of the documents.
    pub tokens: u64,
    /// The ids that are learnt.
    pub targets: u64,
    /// The ids of the longest document.
    pub longest: u32,
    /// Documents that were cut.
    pub cut: u64,
    /// Documents that were left out: longer ones, and those with nothing to learn in their first
    /// [`DataOptions::length`] tokens.
    pub dropped: u64,
    /// Bad lines that were left out.
    pub bad: u64,
}
