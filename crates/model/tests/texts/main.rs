//! Text input and output without weights: tokenizers, templates and answers.

mod answer;
mod chat;
mod chat_families;
mod chat_gguf;
mod hugging_face;
mod ollama_template;
mod texts;
mod tokenizer;
mod tokenizer_hostile;
mod tokenizer_pieces;
