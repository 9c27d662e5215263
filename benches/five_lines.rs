//! The five lines of the README beside the program, with the same model and the same prompt.
//!
//! `cargo bench --bench five_lines -- MODEL.gguf [TOKENS]`. Build the program in release first.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use weft::model::{Executor, GenerateOptions, Model, SessionOptions, chat::Message, chat::RenderOptions};

const PROMPT: &str = "Why is the sky blue?";

/// Answers of each. The first of each is not counted: it builds kernels.
const RUNS: usize = 6;

/// Tokens per second of one answer, from its first token on, and the number of tokens.
struct Rate(f64, usize);

/// The five lines. A limit of tokens is added, because random weights never end an answer.
fn library(file: &Path, tokens: usize) -> Result<Vec<Rate>> {
    let model = Model::open(file)?.on(Executor::best())?;
    let mut rates = vec![];
    for _ in 0..RUNS {
        let mut session = model.session(SessionOptions::default())?;
        let (options, mut read, mut began) = (GenerateOptions::default().max_tokens(tokens), 0, None);
        for token in session.chat_with(&[Message::user(PROMPT)], &RenderOptions::default(), options)? {
            token?;
            began.get_or_insert_with(Instant::now);
            read += 1;
        }
        let seconds = began.context("the answer is empty")?.elapsed().as_secs_f64();
        rates.push(Rate((read - 1) as f64 / seconds, read));
    }
    Ok(rates)
}

/// The program, with the defaults of its flags.
fn program(weft: &Path, file: &Path, tokens: usize) -> Result<Vec<Rate>> {
    let run = || {
        let mut command = Command::new(weft);
        command.arg("run").arg(file).args(["--no-tune", "--json", "-p", PROMPT, "-n", &tokens.to_string()]);
        let output = command.output().with_context(|| weft.display().to_string())?;
        ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        let said: Value = serde_json::from_slice(&output.stdout)?;
        let rate = said["timings"]["decode_tokens_per_second"].as_f64().context("the answer has one token")?;
        Ok(Rate(rate, said["tokens"].as_array().map_or(0, Vec::len)))
    };
    (0..RUNS).map(|_| run()).collect()
}

/// The program, beside this bench or in the folder above it.
fn weft() -> Result<PathBuf> {
    let bench = std::env::current_exe()?;
    let beside =
        bench.ancestors().skip(1).take(2).map(|folder| folder.join(format!("weft{}", std::env::consts::EXE_SUFFIX)));
    beside
        .into_iter()
        .find(|path| path.is_file())
        .context("no program beside this bench; run `cargo build --release -p cli` first")
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let file = args
        .next()
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/cli/assets/default.gguf"), PathBuf::from);
    let tokens = args.next().map_or(Ok(256), |count| count.parse()).context("the number of tokens")?;
    let median = |rates: Vec<Rate>| {
        let mut counted: Vec<f64> = rates.iter().skip(1).map(|rate| rate.0).collect();
        counted.sort_by(f64::total_cmp);
        let tokens: usize = rates.iter().map(|rate| rate.1).sum();
        (counted[counted.len() / 2], counted[0], counted[counted.len() - 1], tokens / RUNS)
    };
    println!("{} on {}: median (least, most) of {} answers", file.display(), Executor::best().name(), RUNS - 1);
    let [library, program] = [("library", library(&file, tokens)?), ("program", program(&weft()?, &file, tokens)?)]
        .map(|(name, rates)| {
            let (middle, least, most, tokens) = median(rates);
            println!("{name}  {middle:9.2} tok/s ({least:.2}, {most:.2}), {tokens} tokens each");
            middle
        });
    println!("library / program {:.4}", library / program);
    Ok(())
}
