//! Errors in a file's tokenizer.

/// Why a tokenizer could not be built. Every variant names the metadata key at fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A key is missing or has another type.
    #[error(transparent)]
    Metadata(#[from] gguf::Error),
    /// A key that this kind of tokenizer needs is missing.
    #[error("{key} is missing; a {model} tokenizer needs it")]
    MissingKey {
        /// The metadata key.
        key: &'static str,
        /// The kind, `tokenizer.ggml.model`.
        model: &'static str,
    },
    /// An unknown kind of tokenizer.
    #[error(
        "tokenizer.ggml.model is \"{}\"; known are gpt2, llama and gemma4",
        found.escape_debug()
    )]
    UnknownModel {
        /// What the file says.
        found: String,
    },
    /// An unknown pre-tokenizer.
    #[error("tokenizer.ggml.pre is \"{}\"; known are {known}", found.escape_debug())]
    UnknownPre {
        /// What the file says.
        found: String,
        /// The known names.
        known: &'static str,
    },
    /// No tokens at all.
    #[error("tokenizer.ggml.tokens is empty")]
    EmptyVocabulary,
    /// More tokens, or more bytes in tokens, than 31-bit numbers can count.
    #[error(
        "tokenizer.ggml.tokens has {tokens} tokens of {bytes} bytes together; \
         both must be below 2^31"
    )]
    VocabularySize {
        /// Number of tokens.
        tokens: usize,
        /// Sum of their lengths.
        bytes: usize,
    },
    /// A token that is too long.
    #[error("tokenizer.ggml.tokens[{id}] has {bytes} bytes; the limit is {limit}")]
    TokenLength {
        /// Its id.
        id: u32,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// An array with one entry per token has another length.
    #[error("{key} has {found} entries for {expected} tokens")]
    ArrayLength {
        /// The metadata key.
        key: &'static str,
        /// Number of tokens.
        expected: usize,
        /// Number of entries.
        found: usize,
    },
    /// A token type outside 0..=6.
    #[error("tokenizer.ggml.token_type[{id}] is {found}; types are 0 to 6")]
    TokenType {
        /// The token's id.
        id: u32,
        /// What the file says.
        found: i32,
    },
    /// A score is NaN.
    #[error("tokenizer.ggml.scores[{id}] is not a number")]
    Score {
        /// The token's id.
        id: u32,
    },
    /// Two tokens have the same spelling.
    #[error(
        "tokenizer.ggml.tokens has \"{}\" twice, at {first} and {second}",
        token.escape_debug()
    )]
    DuplicateToken {
        /// The spelling.
        token: String,
        /// The lower id.
        first: u32,
        /// The higher id.
        second: u32,
    },
    /// A byte token that is not `<0x00>` to `<0xFF>`.
    #[error(
        "tokenizer.ggml.tokens[{id}] is \"{}\", but a byte token is <0x00> to <0xFF>",
        token.escape_debug()
    )]
    ByteToken {
        /// Its id.
        id: u32,
        /// Its spelling.
        token: String,
    },
    /// A text needs the token of a byte, and the vocabulary has none.
    #[error(
        "the text needs the byte 0x{byte:02X}, and tokenizer.ggml.tokens has no token for it; \
         leave the character out or use another file of the model"
    )]
    MissingByte {
        /// The byte.
        byte: u8,
    },
    /// The id of a special token is outside the vocabulary.
    #[error("{key} is {id}, outside the {tokens} tokens of tokenizer.ggml.tokens")]
    IdOutsideVocabulary {
        /// The metadata key.
        key: &'static str,
        /// What the file says.
        id: u32,
        /// Number of tokens.
        tokens: usize,
    },
    /// A merge is not two pieces with one space between them.
    #[error(
        "tokenizer.ggml.merges[{index}] is \"{}\", not two pieces with one space between",
        merge.escape_debug()
    )]
    MalformedMerge {
        /// The index of the merge in the array.
        index: usize,
        /// What the file says.
        merge: String,
    },
    /// A merge needs a piece that is not a token.
    #[error(
        "tokenizer.ggml.merges[{index}] needs \"{}\", which tokenizer.ggml.tokens lacks",
        piece.escape_debug()
    )]
    MergeOutsideVocabulary {
        /// The index of the merge in the array.
        index: usize,
        /// The missing piece.
        piece: String,
    },
}
