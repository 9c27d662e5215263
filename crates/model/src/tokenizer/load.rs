//! Reads the tokenizer's metadata from a file.

use gguf::{Array, FromValue, Gguf};

use super::{Parts, Tokenizer, TokenizerError};

impl Tokenizer {
    /// Builds the tokenizer that `gguf` carries under `tokenizer.ggml.`.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, TokenizerError> {
        let tokens = gguf.get::<Array>("tokenizer.ggml.tokens")?.byte_strs()?.collect();
        Self::from_parts(&Parts {
            model: gguf.get("tokenizer.ggml.model")?,
            pre: gguf.get_opt("tokenizer.ggml.pre")?,
            tokens,
            token_type: opt::<Array>(gguf, "token_type")?.map(|array| array.i32s().map(Iterator::collect)).transpose()?,
            scores: opt::<Array>(gguf, "scores")?.map(|array| array.f32s().map(Iterator::collect)).transpose()?,
            merges: opt::<Array>(gguf, "merges")?.map(|array| array.byte_strs().map(Iterator::collect)).transpose()?,
            bos_token_id: opt(gguf, "bos_token_id")?,
            eos_token_id: opt(gguf, "eos_token_id")?,
            eot_token_id: opt(gguf, "eot_token_id")?,
            eom_token_id: opt(gguf, "eom_token_id")?,
            unknown_token_id: opt(gguf, "unknown_token_id")?,
            padding_token_id: opt(gguf, "padding_token_id")?,
            add_bos_token: opt(gguf, "add_bos_token")?,
            add_space_prefix: opt(gguf, "add_space_prefix")?,
        })
    }
}

fn opt<'a, T: FromValue<'a>>(gguf: &'a Gguf, name: &str) -> Result<Option<T>, TokenizerError> {
    Ok(gguf.get_opt(&format!("tokenizer.ggml.{name}"))?)
}
