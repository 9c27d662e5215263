//! Runs language models of the Gemma and Qwen families from GGUF files, on a GPU or on the CPU.
//!
//! ```no_run
//! use model::{Executor, Model, SessionOptions, chat::Message};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let model = Model::open("qwen3-8b-q4_k_m.gguf")?.on(Executor::best())?;
//!     let mut session = model.session(SessionOptions::default())?;
//!     for token in session.chat(&[Message::user("Why is the sky blue?")])? {
//!         print!("{}", token?.text);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! In reading order:
//!
//! * [`ModelFile`] is an opened file with its tokenizer and template. [`Base`] chooses the types of
//!   its linear layers in memory. [`Checked`] is a file whose
//!   tensors fit its hyper-parameters. [`Needs`] is the memory that the model takes.
//! * [`Model`] is the weights on an [`Executor`], shared by any number of sessions.
//! * [`Session`] is one conversation, with [`SessionOptions`]. It evaluates tokens, saves and loads
//!   itself, and answers. [`Generate`] is an answer on its way, by [`Sampling`].
//! * [`Batch`] has several sequences that share every step. [`AnswerText`] makes text of the ids of
//!   an answer and finds its end.
//! * [`Walk`] compares steps of every plan that sessions of a model have with the CPU.
//! * [`chat`] renders the turns of a conversation by the file's template, and finds thinking and
//!   tool calls in an answer. [`tokenizer`] turns text into ids and back.
//! * [`adapter`] reads LoRA adapters. [`ollama`] finds the models that Ollama has pulled.
//! * [`arch`] has a file for each architecture, to read beside its paper.
//! * [`Error`] names the key, the tensor or the limit.

mod base;
pub mod chat;
pub mod error;
mod file;
#[cfg(feature = "gpu")]
mod gpu;
mod left_out;
mod note;
pub mod ollama;
mod size;
pub mod tokenizer;

pub use base::Base;
pub use error::Error;
pub use file::ModelFile;
pub use gguf::Progress;
#[cfg(feature = "gpu")]
pub use gpu::*;
pub use left_out::LeftOut;
pub use note::Note;
pub use size::Size;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
