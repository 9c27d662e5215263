//! Why a run cannot go on, in the words of its flags.

use super::args::Args;
use crate::text::quoted;
use anyhow::{Error, anyhow};
use train::{CheckpointError, Difference};

/// Facts of a checkpoint whose flag has the same name.
const FLAGS: [&str; 17] = [
    "lr",
    "schedule",
    "warmup",
    "betas",
    "eps",
    "decay",
    "clip",
    "seed",
    "micro",
    "mean",
    "precision",
    "rank",
    "targets",
    "alpha",
    "dropout",
    "base",
    "batch",
];

/// The refusal of a checkpoint with other settings, in the words of flags. Other errors of the
/// folder stay as they are.
pub fn told(args: &Args, error: train::Error) -> Error {
    let train::Error::Checkpoint { reason: CheckpointError::Differs { differences }, .. } = &error else {
        return error.into();
    };
    let folder = args.output.as_ref().map_or_else(String::new, |output| output.display().to_string());
    let mut said: Vec<String> = differences.iter().map(|of| sentence(args, of)).collect();
    said.dedup();
    // The order follows from --seed, and what is held out from the data.
    let differs = |what: &str| differences.iter().any(|of| of.what == what);
    if differs("seed") {
        said.retain(|line| !line.starts_with("the order of the examples"));
    }
    if differs("data") {
        said.retain(|line| !line.starts_with("what is held out"));
    }
    let longer = differences.iter().all(|of| of.what == "steps");
    let way = if longer { new_run(args) } else { "give what it had, or begin a new run in another folder".to_string() };
    anyhow!("{folder}: the run cannot go on: {}; {way}", said.join("; "))
}

fn sentence(args: &Args, Difference { what, kept, now }: &Difference) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "not given".to_string());
    let (kept, now) = (text(kept), text(now));
    let flag = |name: &str| format!("--{name} was {kept}, now {now}");
    let files = args.data.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    match what.as_str() {
        name if FLAGS.contains(&name) => flag(name),
        "steps" => format!("it has {kept} steps, now {now} (--steps, --epochs)"),
        "method" => format!("it trains {kept}, now {now} (--full)"),
        "data" => match args.data.len() {
            1 => format!("{files} has changed since"),
            _ => format!("one of {files} has changed since"),
        },
        "model" | "weights" => format!("{} has changed since, or is another model", args.source.name()),
        "documents" => "one of --length, --longer, --loss and --skip-bad is another".to_string(),
        "part" | "held out" => "what is held out is another (--val, --no-auto-val)".to_string(),
        "texts" => "the chat template of the model has changed since".to_string(),
        "rehearsal" => "what is rehearsed has changed since (--rehearse)".to_string(),
        "packing" => "--no-pack is given now, and was not then, or the reverse".to_string(),
        "rslora" => "--rslora is given now, and was not then, or the reverse".to_string(),
        "init" => "--init names another adapter".to_string(),
        "trained" => "the trained tensors are others (--targets)".to_string(),
        "order" => format!("the order of the examples was {kept}, now {now} (--seed, --no-shuffle)"),
        // Checkpoints of version 1 keep these as they were printed then.
        "adamw" | "rate" | "rows" | "normalize" => "settings of the optimizer or of its steps are others".to_string(),
        other => format!("{other} is another"),
    }
}

/// The command that learns more from where a run has ended.
fn new_run(args: &Args) -> String {
    let model = args.source.model.as_deref().map_or_else(String::new, |model| format!("{} ", quoted(model)));
    let data = args.data.iter().map(|file| format!("--data {} ", quoted(file))).collect::<String>();
    let output = args.output.as_deref().map_or_else(String::new, |output| output.display().to_string());
    let [init, output] = [output.clone(), format!("{output}-2")].map(|path| quoted(std::path::Path::new(&path)));
    let length = match (args.epochs, args.number) {
        (Some(epochs), _) => format!(" --epochs {epochs}"),
        (_, Some(steps)) => format!(" --steps {steps}"),
        _ => String::new(),
    };
    format!(
        "its rate has fallen to the end already, and only --schedule constant can be made longer; a new run from its \
         adapter: weft train {model}{data}--init {init} -o {output}{length}"
    )
}
