//! `weft gradients`: loss and gradients of a batch, for comparing implementations.

use crate::args::Source;
use crate::exit::{Interrupted, note, usage};
use crate::factors::Factors;
use crate::interrupt;
use crate::output;
use crate::progress::Bar;
use crate::steps::{Steps, both_ways};
use crate::train::Learnt;
use anyhow::{Result, anyhow};
use clap::ValueHint;
use kernels::{Executor, Watch};
use model::{KvType, ModelFile, SessionOptions};
use serde_json::json;
use std::io::{BufReader, Write, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use train::defaults;
use train::{Data, DataOptions, Document, Gradients, Loss, Memory, Method, Parameter, Stream, Texts};

/// Write the gradients of a batch by the factors of an adapter, for comparing implementations
///
/// The loss is the mean cross-entropy over all targets of the batch, in nats. The gradients are
/// those by the factors A and B of low-rank adapters, f32, under PEFT's names. The weights of the
/// model stay as they are in the file. Nothing is rounded unless --precision is fast.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft gradients model.gguf --data facts.jsonl -o grads.safetensors
  weft gradients model.gguf --data facts.jsonl -o grads.safetensors --init adapter/
  weft gradients model.gguf --data facts.jsonl -o g.safetensors --targets q,v --rank 8 --seed 1
  weft gradients model.gguf --data facts.jsonl -o g.safetensors --checkpointing layer
  weft gradients model.gguf --data facts.jsonl -o g.safetensors --capture layer_out:h.safetensors
  weft gradients model.gguf --data facts.jsonl -o g.safetensors --json | jq .loss

--data is what `weft train` reads: prompts and completions, conversations, texts, or ids, such as
{\"ids\": [1, 2, 3], \"targets\": [-100, 3, 4], \"weights\": [0, 1, 1]}: targets[i] is the id that should
follow ids[i], and -100 asks for no loss. Without targets, each target is the following id. weights
are optional.")]
pub struct Args {
    #[command(flatten)]
    source: Source,

    /// Examples, as `weft train` reads them; may be given several times; `-` for stdin
    #[arg(long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    data: Vec<PathBuf>,

    /// Most tokens of an example; the tokens behind them are cut off [default: the model's context
    /// length, 2048 at most]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(2..=1 << 20))]
    length: Option<u32>,

    /// What is learnt of prompts and chats
    #[arg(long, value_enum, value_name = "WHAT", default_value = "completions")]
    loss: Learnt,

    /// File to write the gradients to, as safetensors
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    #[command(flatten)]
    factors: Factors,

    /// Seed of new factors: A is random, B is zero
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// The first examples of --data that make the batch
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,

    #[command(flatten)]
    steps: Steps,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let files = [Some(&args.output), args.steps.capture.as_ref().map(|capture| &capture.file)];
    files.into_iter().flatten().try_for_each(|path| output::writable(path))?;
    let file = args.source.model_file()?;
    let documents = documents(args, &file)?;
    let longest = documents.iter().map(|document| document.ids.len() as u32).max().unwrap_or(0);
    let all: usize = documents.iter().map(|document| document.ids.len()).sum();
    let rows = args.steps.micro.unwrap_or_else(|| longest.max(1024).min(u32::try_from(all).unwrap_or(u32::MAX)));
    let session = SessionOptions::default().context(1).kv(KvType::F32);
    let executor = args.source.located(args.steps.device.open(&file, &session))?;
    let checked = args.source.named(file.check(&executor))?;
    let trained = named(args, Method::from(args.factors.lora(&checked, args.seed)?).trained(checked.weights()))?;
    let options = args.steps.options(rows).most_rows(u32::try_from(all).ok()).captures(args.steps.captures());
    // The memory is checked before the weights are loaded.
    named(args, Gradients::memory_of(&checked, &trained, &options))?;
    args.source.say_notes_of_base(&file)?;
    args.source.verify_if_asked(&file)?;
    let model = args.source.weights(file, executor)?;
    let mut gradients = named(args, Gradients::new(&model, &trained, &options))?;
    let loss = computed(args, &mut gradients, &documents)?;
    let by = named(args, gradients.gradients())?;
    train::save_parameters(&args.output, model.summary().architecture, &by)?;
    if let Some(capture) = &args.steps.capture {
        train::save_captures(&capture.file, &loss.captures)?;
    }
    report(args, &loss, &by, gradients.memory(), all, model.executor().name())
}

/// The documents of the first examples.
fn documents(args: &Args, file: &ModelFile) -> Result<Vec<Document>> {
    let context = args.source.named(file.check(&Executor::Cpu))?.summary().context_length;
    let length = args.length.unwrap_or_else(|| defaults::length(context));
    let options = DataOptions::default().length(length).learn(args.loss.into());
    let texts = Texts::from(file);
    let mut documents = vec![];
    if args.data.iter().any(|file| file.as_os_str() == "-") {
        if args.data.len() > 1 {
            return Err(usage("--data - is one source; give no other file"));
        }
        documents = Stream::new("stdin", Box::new(BufReader::new(stdin())), texts, &options).next(args.batch)?;
    } else {
        let bar = Bar::bytes("checking the examples");
        let data = Data::open(&args.data, texts, &options, &|progress| bar.show(progress))?;
        for n in 0..data.len().min(args.batch.into()) {
            documents.extend(data.documents(n)?);
        }
    }
    if documents.is_empty() {
        return Err(anyhow!("stdin has no examples; a line is an object such as {{\"ids\": [1, 2, 3]}}"));
    }
    Ok(documents)
}

/// Computes the loss, with progress, until Ctrl-C.
fn computed(args: &Args, gradients: &mut Gradients, documents: &[Document]) -> Result<Loss> {
    let cancel = Arc::new(AtomicBool::new(false));
    let guard = interrupt::stops(Arc::clone(&cancel));
    let bar = Bar::count("computing gradients");
    let report = bar.reporter();
    let progress = |phase, progress| report(both_ways(phase, progress));
    let result = gradients.compute(documents, Watch { cancel: Some(&cancel), progress: Some(&progress) });
    drop(guard);
    match result {
        Err(train::Error::Kernels(kernels::Error::Cancelled)) => Err(Interrupted.into()),
        other => named(args, other),
    }
}

fn report(args: &Args, loss: &Loss, by: &[Parameter], memory: Memory, tokens: usize, device: String) -> Result<()> {
    let square: f64 = by.iter().flat_map(|parameter| &parameter.values).map(|v| f64::from(*v).powi(2)).sum();
    let norm = square.sqrt();
    let mut out = std::io::stdout().lock();
    if args.json {
        let parts = json!({
            "weights": memory.weights, "parameters": memory.parameters, "gradients": memory.gradients,
            "saved": memory.saved, "scratch": memory.scratch,
        });
        let object = json!({
            "loss": loss.loss, "norm": norm, "targets": loss.targets, "tokens": tokens, "tensors": by.len(),
            "losses": loss.each, "memory_bytes": parts, "device": device,
        });
        writeln!(out, "{object}")?;
    } else {
        writeln!(out, "loss     {:.9} over {} targets of {tokens} tokens", loss.loss, loss.targets)?;
        writeln!(out, "norm     {norm:.9e} of the gradients of {} tensors, in {}", by.len(), args.output.display())?;
        writeln!(out, "memory   {memory}")?;
    }
    if loss.targets == 0 {
        note("no target asks for a loss, so all gradients are zero");
    }
    Ok(())
}

/// Adds the name of the model to an error that names no file.
fn named<T>(args: &Args, result: Result<T, train::Error>) -> Result<T> {
    result.map_err(|error| match error {
        train::Error::Model(error) => args.source.named::<()>(Err(error)).expect_err("an error"),
        other => anyhow::Error::new(other).context(args.source.name()),
    })
}
