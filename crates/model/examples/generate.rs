//! Chats with a GGUF model from the command line: `cargo run -p model --example generate -- MODEL.gguf [PROMPT]`.

use kernels::Executor;
use model::chat::{Message, RenderOptions};
use model::{GenerateOptions, Model, SessionOptions};
use std::error::Error;
use std::io::Write;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: generate MODEL.gguf [PROMPT]")?;
    let prompt = arguments.next().unwrap_or_else(|| "Hello! Who are you?".to_string());

    // A GPU where there is one, else the CPU.
    let model = Arc::new(Model::open(path)?.on(Executor::best())?);
    let mut chat = model.session(SessionOptions::default())?;
    let ids = model.template().encode(model.tokenizer(), &[Message::user(prompt)], &RenderOptions::default())?;
    chat.set_prompt(&ids)?;

    let options = GenerateOptions { max_tokens: Some(256), ..GenerateOptions::default() };
    for token in chat.generate_with(options)? {
        print!("{}", token?.text);
        std::io::stdout().flush()?;
    }
    println!();
    Ok(())
}
