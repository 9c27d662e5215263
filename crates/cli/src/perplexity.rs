//! `weft perplexity`: how well a model predicts a text.

use crate::args::{MACHINE, Mapping, Place, Source};
use crate::exit::{Interrupted, usage};
use crate::interrupt;
use crate::lora::{self, Adapters};
use crate::progress::Bar;
use crate::text;
use anyhow::{Result, anyhow};
use clap::ValueHint;
use model::tokenizer::Special;
use model::{Error, Session};
use rayon::prelude::*;
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

/// Measure how well a model predicts a text
///
/// Windows of --ctx tokens move over the text by --stride tokens. Every token after the first is
/// scored once, in the earliest window that contains it. With the default stride, every token after
/// the first window has at least half a window of context. The error is one standard error of the
/// mean; it treats tokens as independent.
#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Examples:
  weft perplexity qwen3-8b wiki.test.raw
  weft perplexity qwen3-8b wiki.test.raw --ctx 2048 --stride 1024
  weft perplexity qwen3-8b wiki.test.raw --windows 20 --json
  weft perplexity qwen3-8b held-out.txt --lora adapter/"
)]
pub struct Args {
    /// GGUF file, or the name of a known model, of one of the hub or of one in Ollama [default: the
    /// small model that weft ships]
    #[arg(value_hint = ValueHint::FilePath)]
    model: Option<PathBuf>,

    /// The text, UTF-8; `-` reads stdin
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Tokens in a window [default: 512, or the model's own context length if that is less]
    #[arg(short = 'c', long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(2..))]
    ctx: Option<u32>,

    /// Tokens by which the window moves [default: half a window]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    stride: Option<u32>,

    /// Stop after this many windows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    windows: Option<u32>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    adapters: Adapters,

    #[command(flatten)]
    mapping: Mapping,

    /// Read the whole model first and check it for damage: the digests of Ollama and of the hub,
    /// unknown types, NaN and infinite weights
    #[arg(long, help_heading = MACHINE)]
    verify: bool,

    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

/// The default number of tokens in a window.
const WINDOW: u32 = 512;

/// The count, sum and sum of squares of negative log-likelihoods.
#[derive(Clone, Copy, Default)]
struct Score {
    count: usize,
    sum: f64,
    squares: f64,
}

impl Score {
    fn add(&mut self, nll: f64) {
        self.count += 1;
        self.sum += nll;
        self.squares += nll * nll;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    fn perplexity(&self) -> f64 {
        self.mean().exp()
    }

    /// One standard error of the perplexity, as a first-order estimate.
    fn error(&self) -> f64 {
        if self.count < 2 {
            return f64::NAN;
        }
        let variance = (self.squares / self.count as f64 - self.mean().powi(2)).max(0.0);
        self.perplexity() * (variance / (self.count - 1) as f64).sqrt()
    }
}

/// A window: tokens `from..to` of the text. Tokens `scored..to` are new in this window.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    from: usize,
    scored: usize,
    to: usize,
}

/// Windows of `size` tokens over a text of `tokens` tokens, `stride` tokens apart.
fn windows(tokens: usize, size: usize, stride: usize) -> Vec<Window> {
    let mut all = vec![];
    let (mut from, mut scored) = (0, 1);
    while scored < tokens {
        let to = tokens.min(from + size);
        all.push(Window { from, scored, to });
        scored = to;
        from += stride;
    }
    all
}

pub fn run(args: &Args) -> Result<()> {
    let source = Source { model: args.model.clone(), mapping: args.mapping, verify: args.verify };
    let file = source.model_file()?;
    let text = if args.file.as_os_str() == "-" { text::stdin()? } else { text::file(&args.file)? };
    let tokens = file.tokenizer().encode(&text, Special::Text)?;
    if tokens.len() < 2 {
        return Err(anyhow!("{} has {} tokens; at least 2 are needed", args.file.display(), tokens.len()));
    }
    let limit = source.named(file.check(&kernels::Executor::Cpu))?.summary().context_length;
    let size = args.ctx.unwrap_or(WINDOW.min(limit));
    let stride = args.stride.unwrap_or((size / 2).max(1));
    let bos = file.tokenizer().bos().filter(|_| file.tokenizer().adds_bos());
    // If the model's prompts begin with a BOS token, every window does too, so one place is taken.
    let places = size as usize - usize::from(bos.is_some());
    if stride as usize >= places {
        return Err(usage(format!(
            "--stride {stride} must be less than the {places} tokens of a window, so that each token has one before it"
        )));
    }
    let mut all = windows(tokens.len(), places, stride as usize);
    all.truncate(args.windows.map_or(usize::MAX, |n| n as usize));
    let options = args.place.session(Some(size));
    let loaded = source.load(file, &args.place.device, &options, &args.adapters, false)?;
    let mut session = source.named(loaded.session(options))?;
    let began = Instant::now();
    let total = measure(args, &source, &mut session, &tokens, bos, &all)?;
    let executor = session.model().executor();
    let mut out = std::io::stdout();
    if args.json {
        let report = json!({
            "model": source.name(), "device": executor.name(), "executor": executor.kind(), "kv": args.place.kv().name(),
            "file": args.file.display().to_string(), "tokens": tokens.len(), "scored": total.count, "windows": all.len(),
            "context": size, "stride": stride, "nll": total.mean(), "perplexity": total.perplexity(), "error": total.error(),
            "adapters": lora::report(session.adapters()), "seconds": began.elapsed().as_secs_f64(),
        });
        writeln!(out, "{report}")?;
    } else {
        let (value, error) = (total.perplexity(), total.error());
        writeln!(
            out,
            "perplexity {value:.4} +/- {error:.4} over {} tokens, windows of {size} moved by {stride}",
            total.count
        )?;
    }
    Ok(())
}

/// Scores all windows in order and prints the value after each.
fn measure(
    args: &Args,
    source: &Source,
    session: &mut Session,
    tokens: &[u32],
    bos: Option<u32>,
    all: &[Window],
) -> Result<Score> {
    let mut total = Score::default();
    let bar = Bar::count("perplexity");
    let guard = interrupt::stops(session.cancel_flag());
    for (n, window) in all.iter().enumerate() {
        match score(session, tokens, bos, window, &mut total) {
            Err(Error::Cancelled) => return Err(Interrupted.into()),
            result => source.named(result)?,
        }
        bar.set(n as u64 + 1, all.len() as u64);
        bar.say(format!("perplexity {:.4}", total.perplexity()));
        if !args.json {
            let (mut out, value, error) = (std::io::stdout(), total.perplexity(), total.error());
            let mut line = || writeln!(out, "window {:>5} of {}  {value:.4} +/- {error:.4}", n + 1, all.len());
            if std::io::stdout().is_terminal() { bar.suspend(line)? } else { line()? }
        }
        if guard.raised() {
            return Err(Interrupted.into());
        }
    }
    Ok(total)
}

/// Adds the negative log-likelihoods of a window's new tokens.
fn score(
    session: &mut Session,
    tokens: &[u32],
    bos: Option<u32>,
    window: &Window,
    total: &mut Score,
) -> Result<(), Error> {
    session.reset();
    session.feed(bos.as_slice())?;
    // The row before the first new token predicts it. Earlier rows need no logits.
    session.feed(&tokens[window.from..window.scored - 1])?;
    session.prefill(None)?;
    let skipped = session.tokens().len();
    session.feed(&tokens[window.scored - 1..window.to])?;
    let vocabulary = session.model().summary().vocabulary as usize;
    session.logits(|first, logits, _| {
        let expected = &tokens[window.scored + (first - skipped)..window.to];
        let rows = logits.par_chunks_exact(vocabulary).zip(expected).map(|(row, &id)| nll(row, id));
        rows.collect::<Vec<f64>>().into_iter().for_each(|nll| total.add(nll));
    })
}

/// -ln softmax(row)[id], in f64.
fn nll(row: &[f32], id: u32) -> f64 {
    let most = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = row.iter().map(|&v| (f64::from(v) - most).exp()).sum();
    most + sum.ln() - f64::from(row[id as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_after_the_first_is_scored_once() {
        for (tokens, size, stride) in [(2, 512, 256), (1000, 512, 256), (1024, 512, 511), (77, 10, 3), (9, 2, 1)] {
            let mut next = 1;
            for w in windows(tokens, size, stride) {
                assert_eq!(w.scored, next, "{tokens} {size} {stride}");
                assert!(w.from < w.scored && w.scored < w.to && w.to - w.from <= size, "{w:?}");
                next = w.to;
            }
            assert_eq!(next, tokens);
        }
    }

    #[test]
    fn equal_logits_make_the_perplexity_the_size_of_the_vocabulary() {
        let mut score = Score::default();
        (0..10).for_each(|id| score.add(nll(&[3.0; 16], id)));
        assert!((score.perplexity() - 16.0).abs() < 1e-9 && score.error() < 1e-6);
    }

    #[test]
    fn likelihoods_of_large_logits_stay_finite() {
        assert_eq!(nll(&[1e30, 0.0], 0), 0.0);
        assert_eq!(nll(&[1e30, 0.0], 1), f64::from(1e30f32));
    }
}
