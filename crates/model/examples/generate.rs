//! Answers a prompt with a GGUF model:
//! `cargo run -p model --example generate -- MODEL.gguf [PROMPT]`.

use kernels::Executor;
use model::chat::Message;
use model::{Model, SessionOptions};
use std::error::Error;
use std::io::Write;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: generate MODEL.gguf [PROMPT]")?;
    let prompt = arguments.next().unwrap_or_else(|| "Hello! Who are you?".to_string());

    // A GPU if there is one, otherwise the CPU.
    let model = Model::open(path)?.on(Executor::best())?;
    let mut session = model.session(SessionOptions::default())?;
    for token in session.chat(&[Message::user(prompt)])? {
        print!("{}", token?.text);
        std::io::stdout().flush()?;
    }
    println!();
    Ok(())
}
