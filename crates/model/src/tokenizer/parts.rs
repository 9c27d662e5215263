//! A tokenizer as plain data.

/// The metadata under `tokenizer.ggml.`; field names are the key names.
#[derive(Clone, Debug, Default)]
pub struct Parts<'a> {
    /// `gpt2`, `llama` or `gemma4`.
    pub model: &'a str,
    /// The pre-tokenizer of `gpt2`, by default Qwen2's; an empty text and `default` say nothing, as
    /// `None` does. `llama` with `gemma4` here means `gemma4`: Ollama's converter writes it so.
    pub pre: Option<&'a str>,
    /// The spelling of each token, by id.
    pub tokens: Vec<&'a [u8]>,
    /// The type of each token, 0 to 6; all normal if absent. If a `gemma4` file has no byte tokens,
    /// normal tokens spelled like bytes become byte tokens. Tokens that end an answer and those of
    /// turns are control tokens whatever their type.
    pub token_type: Option<Vec<i32>>,
    /// The score of each token; `llama` needs them.
    pub scores: Option<Vec<f32>>,
    /// `"left right"`, highest priority first; `gpt2` and `gemma4` need them.
    pub merges: Option<Vec<&'a [u8]>>,
    /// Begins a text.
    pub bos_token_id: Option<u32>,
    /// Ends a text.
    pub eos_token_id: Option<u32>,
    /// All tokens that end a text, if the file lists them.
    pub eos_token_ids: Vec<u32>,
    /// Ends a turn.
    pub eot_token_id: Option<u32>,
    /// Ends a message within a turn.
    pub eom_token_id: Option<u32>,
    /// Replaces characters missing from the vocabulary.
    pub unknown_token_id: Option<u32>,
    /// Pads batches.
    pub padding_token_id: Option<u32>,
    /// Whether a prompt starts with BOS. If absent, only `llama` prompts do. `gemma4` prompts
    /// always do: some files say no, but the model fails without BOS.
    pub add_bos_token: Option<bool>,
    /// Whether a space is added before each stretch of text between added tokens. If absent, only
    /// `llama` adds it.
    pub add_space_prefix: Option<bool>,
}
