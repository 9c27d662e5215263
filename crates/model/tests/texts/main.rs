//! Text input and output without weights: tokenizers, templates and answers.

mod answer;
mod chat;
mod chat_families;
mod chat_forms;
mod chat_gguf;
mod hugging_face;
mod jinja2;
mod ollama_template;
mod template_limits;
mod texts;
mod tokenizer;
mod tokenizer_hostile;
mod tokenizer_pieces;

/// Templates in the style of those that Qwen's and Gemma's makers publish.
fn published() -> [(&'static str, &'static str); 3] {
    [("qwen, tools", chat::QWEN), ("qwen, macros", chat_families::QWEN), ("gemma 4", chat_families::GEMMA)]
}
