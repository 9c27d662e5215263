//! `weft logits`: the logits of given tokens as a NumPy file, for comparing implementations.

use crate::args::{Kv, Place, Source};
use crate::exit::{Interrupted, usage};
use crate::interrupt::{self, Guard};
use crate::lora::Adapters;
use crate::npy;
use crate::open;
use crate::output;
use crate::progress::Bar;
use anyhow::Result;
use clap::ValueHint;
use gguf::atomic_write;
use kernels::Precision;
use model::{Error, Session};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Write the logits of given tokens as a NumPy array
///
/// Row t of the f32 array [T, V] holds the logits after token t. The tokens are evaluated
/// unchanged: no token is added in front. Because the numbers are for comparison, nothing is
/// rounded unless a flag asks for it: activations and the KV cache are f32.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft logits model.gguf --tokens 1,2,3 -o logits.npy
  weft logits model.gguf --tokens @tokens.json -o logits.npy --device cpu
  weft logits model.gguf --tokens @tokens.json -o logits.npy --chunk 1    token by token
  weft logits model.gguf --tokens @tokens.json -o logits.npy --lora adapter.gguf:0.5
  weft tokenize model.gguf --json 'Hello' | jq .ids > tokens.json")]
pub struct Args {
    #[command(flatten)]
    source: Source,

    /// Token ids, or `@FILE` with a JSON array of them
    #[arg(long, value_name = "IDS|@FILE")]
    tokens: String,

    /// File to write the array to; `-` for stdout
    #[arg(short, long, value_name = "OUT.npy", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    adapters: Adapters,

    /// Largest number of tokens evaluated together
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    chunk: u32,
}

pub fn run(args: &Args) -> Result<()> {
    let tokens = open::tokens(&args.tokens)?;
    if tokens.is_empty() {
        return Err(usage("--tokens holds no ids"));
    }
    let to_stdout = args.output == Path::new("-");
    if to_stdout && io::stdout().is_terminal() {
        return Err(usage("the array is binary and not printed to a terminal; name a file with --output"));
    }
    if !to_stdout {
        output::writable(&args.output)?;
    }
    let file = args.source.model_file()?;
    let options = args.place.session_or(Some(tokens.len() as u32), Precision::F32, Kv::F32).chunk(args.chunk);
    let loaded = args.source.load(file, &args.place.device, &options, &args.adapters, false)?;
    let mut session = args.source.named(loaded.session(options))?;
    args.source.named(session.feed(&tokens))?;
    // The guard comes before the temporary file: a signal never leaves the file behind.
    let guard = interrupt::stops(session.cancel_flag());
    // `atomic_write` returns errors of the writer; `failed` holds an error of the model.
    let mut failed = Ok(());
    let mut write = |out: &mut dyn Write| rows(&mut session, &guard, tokens.len(), out, &mut failed);
    let written = if to_stdout {
        write(&mut io::stdout().lock()).map_err(anyhow::Error::from)
    } else {
        atomic_write(&args.output, write).map_err(anyhow::Error::from)
    };
    match failed {
        Err(Error::Cancelled) => Err(Interrupted.into()),
        Err(error) => args.source.named(Err(error)),
        Ok(()) => written,
    }
}

/// Evaluates the tokens and writes their logits row by row.
fn rows(
    session: &mut Session,
    guard: &Guard,
    count: usize,
    out: &mut dyn Write,
    failed: &mut Result<(), Error>,
) -> io::Result<()> {
    let vocabulary = session.model().summary().vocabulary as usize;
    let cancel = session.cancel_flag();
    let bar = Bar::count("evaluating tokens");
    npy::header(out, count, vocabulary)?;
    let mut written = Ok(());
    *failed = session.logits(|first, logits, _| {
        if written.is_ok() {
            written = npy::values(out, logits);
        }
        bar.set((first + logits.len() / vocabulary) as u64, count as u64);
        if guard.raised() || written.is_err() {
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    written?;
    // With this error `atomic_write` does not rename the incomplete file to the final name.
    failed.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
    out.flush()
}
