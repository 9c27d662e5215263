//! The library calls behind `weft run`: opens a file, makes a session and streams an answer.

use kernels::Executor;
use model::chat::{Message, RenderOptions};
use model::{GenerateOptions, Model, Sampling, SessionOptions};
use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/default.gguf");
    let mut words = std::env::args().skip(1);
    let question = words.next().unwrap_or_else(|| "Where does Wren live?".to_string());
    let model = Model::open(words.next().as_deref().unwrap_or(path))?.on(Executor::best())?;
    let mut session = model.session(SessionOptions::default())?;
    let options = GenerateOptions::default().sampling(Sampling::greedy());
    for token in session.chat_with(&[Message::user(question)], &RenderOptions::default(), options)? {
        print!("{}", token?.text);
        std::io::stdout().flush()?;
    }
    println!();
    Ok(())
}
