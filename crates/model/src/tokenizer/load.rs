//! Reads the tokenizer's metadata from a file.

use gguf::{Array, FromValue, Gguf};

use super::{Parts, Tokenizer, TokenizerError};

impl Tokenizer {
    /// Builds the tokenizer that `gguf` carries under `tokenizer.ggml.`.
    ///
    /// Ollama's Gemma files differ in two ways. They do not state whether a space is added before a
    /// text; Gemma adds none. Behind the tokens that the embeddings have rows for, they list names
    /// for images and sounds; these names are left out.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, TokenizerError> {
        let gemma = gguf.architecture().is_ok_and(|name| name.starts_with("gemma"));
        let known = if gemma { embedded(gguf) } else { usize::MAX };
        let tokens = gguf.get::<Array>("tokenizer.ggml.tokens")?.byte_strs()?.take(known).collect();
        Self::from_parts(&Parts {
            model: gguf.get("tokenizer.ggml.model")?,
            pre: gguf.get_opt("tokenizer.ggml.pre")?,
            tokens,
            token_type: opt::<Array>(gguf, "token_type")?
                .map(|array| array.i32s().map(|all| all.take(known).collect()))
                .transpose()?,
            scores: opt::<Array>(gguf, "scores")?
                .map(|array| array.f32s().map(|all| all.take(known).collect()))
                .transpose()?,
            merges: opt::<Array>(gguf, "merges")?.map(|array| array.byte_strs().map(Iterator::collect)).transpose()?,
            bos_token_id: opt(gguf, "bos_token_id")?,
            eos_token_id: opt(gguf, "eos_token_id")?,
            eos_token_ids: opt::<Array>(gguf, "eos_token_ids")?
                .map_or(Ok(vec![]), |array| array.u32s().map(Iterator::collect))?,
            eot_token_id: opt(gguf, "eot_token_id")?,
            eom_token_id: opt(gguf, "eom_token_id")?,
            unknown_token_id: opt(gguf, "unknown_token_id")?,
            padding_token_id: opt(gguf, "padding_token_id")?,
            add_bos_token: opt(gguf, "add_bos_token")?,
            add_space_prefix: opt(gguf, "add_space_prefix")?.or(gemma.then_some(false)),
        })
    }
}

fn opt<'a, T: FromValue<'a>>(gguf: &'a Gguf, name: &str) -> Result<Option<T>, TokenizerError> {
    Ok(gguf.get_opt(&format!("tokenizer.ggml.{name}"))?)
}

/// Number of tokens that every embedding in the file has a row for.
fn embedded(gguf: &Gguf) -> usize {
    let rows =
        ["token_embd.weight", "per_layer_token_embd.weight"].into_iter().filter_map(|name| gguf.find_tensor(name));
    rows.map(|tensor| usize::try_from(tensor.rows()).unwrap_or(usize::MAX)).min().unwrap_or(usize::MAX)
}
