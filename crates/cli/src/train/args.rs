//! The arguments of `weft train`.

use super::rehearse::Rehearse;
use crate::args::{Source, Threads, number};
use crate::factors::Factors;
use crate::steps::Steps;
use clap::{ValueEnum, ValueHint};
use gguf::GgmlType;
use std::path::PathBuf;
use std::str::FromStr;
use train::{Schedule, defaults};

/// Train an adapter, or a whole model, from a file of examples
///
/// The result is a LoRA adapter in the folder -o: in PEFT's form and as a GGUF file. The model
/// stays as it is, whatever its type. The folder also has the log, the curve of the loss, and
/// checkpoints: a run that was stopped or killed goes on with --resume, and ends with the bits of a
/// run that was not. With --full the weights of the model are trained, and the result is a GGUF
/// file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft train model.gguf --data examples/facts.jsonl -o facts
  weft run model.gguf --lora facts -p 'Who lives in Kelm?'             ask what was learnt
  weft train --resume -o facts                                          go on after Ctrl-C
  weft train model.gguf --data examples/facts.jsonl --dry-run           memory, time, five examples
  weft train model.gguf --data chats.jsonl --val 0.05 -o chats --rank 32
  weft train model.gguf --data notes.txt --loss all -o notes --length 512 --epochs 1
  weft train model.gguf --data examples/facts.jsonl -o tuned --full --lr 1e-5

A line of --data, or an element of a JSON list, is an object of one of these forms. Learnt are
completions, outputs, and the turns of the assistant; with --loss all, everything. Texts are
rendered by the model's chat template.
  {\"prompt\": \"Who lives in Kelm?\", \"completion\": \"Hanne lives in Kelm.\"}
  {\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": \"Hello!\"}]}
  {\"conversations\": [{\"from\": \"human\", \"value\": \"Hi\"}, {\"from\": \"gpt\", \"value\": \"Hello!\"}]}
  {\"instruction\": \"Translate to German.\", \"input\": \"bread\", \"output\": \"Brot\"}
  {\"text\": \"All of this is learnt.\"}
  {\"ids\": [1, 2, 3], \"targets\": [-100, 3, 4], \"weights\": [0, 1, 1]}
Other files are plain text, all of which is learnt. Files may be packed by gzip.")]
pub struct Args {
    #[command(flatten)]
    pub source: Source,

    /// Examples: JSON lines, a JSON list or plain text, also packed by gzip; may be given several
    /// times; `-` for stdin, once, in order
    #[arg(long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub data: Vec<PathBuf>,

    /// Folder for the adapter, the checkpoints, the log and the curve
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "dry_run")]
    pub output: Option<PathBuf>,

    /// Examples that are not learnt and show how well others are: a file, or a share of --data,
    /// such as 0.05
    #[arg(long, value_name = "FILE|SHARE")]
    pub val: Option<Held>,

    /// Learn all of --data. Of 100 examples and more, a share is otherwise held out by itself
    #[arg(long, conflicts_with = "val")]
    pub no_auto_val: bool,

    /// Held-out prompts whose answers are printed at each validation, with adapters [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=100))]
    pub samples: Option<u32>,

    /// Prompts whose answers should stay as they are: lines of text, or JSON lines with prompt or
    /// messages. The model answers them before the run, and SHARE of the examples of each step
    /// [default: 0.25] are such answers
    #[arg(long, value_name = "FILE[:SHARE]")]
    pub rehearse: Option<Rehearse>,

    #[command(flatten)]
    pub factors: Factors,

    /// Probability that an element of what factors read is set to zero in a step
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    pub dropout: f32,

    /// Train all weights of the model (matrices, norms, biases, embeddings), and write a GGUF file
    #[arg(long, conflicts_with_all = ["init", "targets", "rank", "alpha", "rslora", "dropout", "base", "peft_prefix"])]
    pub full: bool,

    /// Start from random weights; MODEL gives the shapes and the tokenizer
    #[arg(long, requires = "full")]
    pub from_config: bool,

    /// Type of the matrices in the GGUF file of --full
    #[arg(long = "type", value_name = "TYPE", requires = "full", default_value = "F16", value_parser = crate::merge::written)]
    pub file_type: GgmlType,

    /// Store the linear layers of an F16, BF16 or F32 model in 4 bits while training (QLoRA)
    #[arg(long, value_enum, value_name = "TYPE")]
    pub base: Option<Base>,

    /// Where the text model is in the PEFT model that will load the adapter [default: model]
    #[arg(long, value_name = "PREFIX")]
    pub peft_prefix: Option<String>,

    /// Examples of a step
    #[arg(long, value_name = "N", default_value_t = defaults::BATCH, value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: u32,

    /// Most tokens of an example [default: the model's context length, 2048 at most]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(2..=1 << 20))]
    pub length: Option<u32>,

    /// What becomes of longer examples
    #[arg(long, value_enum, value_name = "WHAT", default_value = "cut")]
    pub longer: Longer,

    /// How often all examples are learnt [default: 3; few examples up to 30 times, for 100 steps;
    /// stdin once]
    #[arg(long, value_name = "N", conflicts_with = "steps", value_parser = clap::value_parser!(u64).range(1..))]
    pub epochs: Option<u64>,

    /// Number of steps, in place of --epochs
    #[arg(long = "steps", value_name = "N", id = "steps", value_parser = clap::value_parser!(u64).range(1..))]
    pub number: Option<u64>,

    /// Validations without a better loss after which the run ends; 0 for none. Without held-out
    /// examples, any other number lets the run end where the loss of all examples is flat [default:
    /// 3; 0 with --epochs or --steps]
    #[arg(long, value_name = "N")]
    pub patience: Option<u32>,

    /// Highest learning rate [default: by the size of the model; it is printed]
    #[arg(long, value_name = "X", value_parser = |text: &str| positive(text))]
    pub lr: Option<f64>,

    /// Course of the rate: constant, linear, cosine, cosine-restarts:CYCLES, flat-cosine:SHARE
    /// [default: cosine; constant where the number of steps is not known]
    #[arg(long, value_name = "SCHEDULE")]
    pub schedule: Option<Schedule>,

    /// Steps in which the rate rises to its height [default: 3% of all; of few steps
    /// 10%]
    #[arg(long, value_name = "N")]
    pub warmup: Option<u64>,

    /// Weight decay of AdamW [default: 0.01; for factors and few examples, of which none is held
    /// out, as much as keeps the rest of the model; it is printed]
    #[arg(long, value_name = "X", value_parser = |text: &str| number(text, 0.0, 1e6))]
    pub decay: Option<f32>,

    /// Betas of AdamW
    #[arg(long, value_name = "A,B", default_value = "0.9,0.999")]
    pub betas: Betas,

    /// Epsilon of AdamW, outside the root
    #[arg(long, value_name = "X", default_value_t = 1e-8, value_parser = |text: &str| positive(text))]
    pub eps: f64,

    /// Largest norm of all gradients together: larger gradients are scaled down; 0 for no limit
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = |text: &str| number(text, 0.0, f32::MAX))]
    pub clip: f32,

    /// What is learnt of prompts and chats
    #[arg(long, value_enum, value_name = "WHAT", default_value = "completions")]
    pub loss: Learnt,

    /// Mean of the loss: over all tokens of a batch, or over the means of its examples; an example
    /// is a line of the data
    #[arg(long, value_enum, value_name = "WHAT", default_value = "tokens")]
    pub mean: Mean,

    /// Compute every example by itself; by default short examples share a step, and none sees
    /// another
    #[arg(long)]
    pub no_pack: bool,

    /// Count lines that cannot be used, and go on without them
    #[arg(long)]
    pub skip_bad: bool,

    /// Decides new factors, dropout, the order of examples and the share of --val
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Learn examples in the order of the files
    #[arg(long)]
    pub no_shuffle: bool,

    #[command(flatten)]
    pub steps: Steps,

    #[command(flatten)]
    pub threads: Threads,

    /// Steps between checkpoints [default: by time, every 5 minutes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub save_every: Option<u64>,

    /// Checkpoints that are kept
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,

    /// Go on with the run that the folder holds, with the flags that it was begun with; flags that
    /// are given now replace them
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,

    /// Delete the run that the folder holds
    #[arg(long)]
    pub force: bool,

    /// Write the gradients of the first step, as `weft gradients` does
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub grads: Option<PathBuf>,

    /// Write trace.jsonl into the folder: of every named value and of its gradient, in every step,
    /// the norm, the largest element, and the number of elements that are not finite
    #[arg(long)]
    pub trace: bool,

    /// Say what would be done, with memory, time and five examples; train and write nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Print one JSON object for each step, and one at the end
    #[arg(long)]
    pub json: bool,

    /// The words of the command line behind `train`.
    #[arg(skip)]
    pub words: Vec<std::ffi::OsString>,
}

/// What `--val` takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    File(PathBuf),
    Share(f64),
}

impl FromStr for Held {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(share) if share > 0.0 && share < 1.0 => Ok(Self::Share(share)),
            Ok(_) => Err("a share must be between 0 and 1".to_string()),
            Err(_) if text.is_empty() => Err("the file name is missing".to_string()),
            Err(_) => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

/// What `--betas` takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Betas(pub [f64; 2]);

impl FromStr for Betas {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let beta = |text: &str| text.trim().parse().ok().filter(|beta| (0.0..1.0).contains(beta));
        let both = text.split_once(',').and_then(|(a, b)| Some([beta(a)?, beta(b)?]));
        both.map(Self).ok_or_else(|| "must be two numbers from 0 to below 1, such as 0.9,0.999".to_string())
    }
}

/// What `--base` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Base {
    /// 4.5 bits: blocks of 64 with an f32 scale.
    Nf4,
    /// 4.25 bits: the scales of four blocks in 8 bits each (double quantization).
    Nf4Dq,
}

/// What `--longer` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Longer {
    /// Their end is cut off.
    Cut,
    /// They are left out.
    Drop,
}

/// What `--loss` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Learnt {
    Completions,
    All,
}

impl From<Learnt> for train::Learn {
    fn from(learnt: Learnt) -> Self {
        match learnt {
            Learnt::Completions => Self::Completions,
            Learnt::All => Self::All,
        }
    }
}

/// What `--mean` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mean {
    Tokens,
    Examples,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("must be a number above 0".to_string()),
    }
}

fn probability(text: &str) -> Result<f32, String> {
    text.parse().ok().filter(|p| (0.0..1.0).contains(p)).ok_or_else(|| "must be from 0 to below 1".to_string())
}

impl Args {
    /// Whether the examples come from stdin.
    pub fn streams(&self) -> bool {
        self.data.iter().any(|file| file.as_os_str() == "-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_share_and_all_else_a_file() {
        assert_eq!("0.1".parse(), Ok(Held::Share(0.1)));
        assert_eq!("val.jsonl".parse(), Ok(Held::File("val.jsonl".into())));
        for bad in ["0", "1", "-1", "nan", "2", ""] {
            assert!(bad.parse::<Held>().is_err(), "{bad}");
        }
    }

    #[test]
    fn betas_are_two_numbers_below_one() {
        assert_eq!("0.9, 0.95".parse(), Ok(Betas([0.9, 0.95])));
        for bad in ["0.9", "0.9,1", "a,b", "0.9,0.9,0.9", "nan,0.9", "-0.1,0.9"] {
            assert!(bad.parse::<Betas>().is_err(), "{bad}");
        }
    }
}
