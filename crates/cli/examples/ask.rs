//! The library calls behind `weft run`: opens a file, makes a session and streams an answer.

use kernels::Executor;
use model::chat::{Message, RenderOptions};
use model::{GenerateOptions, Model, Sampling, SessionOptions};
use std::error::Error;
use std::io::Write;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/default.gguf");
    let mut words = std::env::args().skip(1);
    let question = words.next().unwrap_or_else(|| "Where does Wren live?".to_string());
    let model = Arc::new(Model::open(words.next().as_deref().unwrap_or(path))?.on(Executor::best())?);
    let prompt = model.template().encode(model.tokenizer(), &[Message::user(question)], &RenderOptions::default())?;
    let mut session = model.session(SessionOptions::default())?;
    session.feed(&prompt)?;
    for token in session.generate_with(GenerateOptions { sampling: Sampling::greedy(), ..GenerateOptions::default() })? {
        print!("{}", token?.text);
        std::io::stdout().flush()?;
    }
    println!();
    Ok(())
}
