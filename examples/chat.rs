//! Answers a question with a model: `cargo run --example chat`, in a folder with the file.

use weft::model::{Executor, Model, SessionOptions, chat::Message};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::open("qwen3-8b-q4_k_m.gguf")?.on(Executor::best())?;
    let mut session = model.session(SessionOptions::default())?;
    for token in session.chat(&[Message::user("Why is the sky blue?")])? {
        print!("{}", token?.text);
    }
    Ok(())
}
