//! The arguments of `weft bench`.

use crate::args::{Place, Source, Threads};
use crate::lora::Adapters;

/// Measure the speed of prefill and decode
///
/// Tests have the names of llama-bench: pp512 reads a prompt of 512 tokens, tg128 generates 128
/// tokens. @d4096 means after 4096 tokens of context; @b8 means 8 sequences at once, each with
/// other tokens, all of them counted. Every test runs once unmeasured, then --repetitions times.
/// t/s is the median of these runs, with the least and the most. GB/s counts the weights once per
/// step, and the KV cache. roof is the shortest possible time of the work, by the device's measured
/// bandwidth and matrix rate, as a share of the measured time.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft bench qwen3-8b
  weft bench qwen3-8b -p 512,2048 -n 128 -d 0,4096 -b 1,8 -r 5
  weft bench qwen3-8b -p 0 -n 64 --device cpu          measure decode only
  weft bench qwen3-8b --lora adapter.gguf               measure the cost of an adapter
  weft bench qwen3-8b -p 0 -n 64 --profile             show the time of each kernel
  weft bench qwen3-8b --train -p 1024 -b 2              measure a step of training
  weft bench qwen3-8b --json | jq '.[] | {test, tokens_per_second}'")]
pub struct Args {
    #[command(flatten)]
    pub source: Source,

    /// Lengths of prompts to read; 0 for none
    #[arg(short = 'p', long = "prompt", value_name = "N,..", value_delimiter = ',', default_value = "512")]
    pub prompts: Vec<u32>,

    /// Numbers of tokens to generate; 0 for none
    #[arg(short = 'n', long = "generate", value_name = "N,..", value_delimiter = ',', default_value = "128")]
    pub generate: Vec<u32>,

    /// Numbers of tokens in the context before a test begins
    #[arg(short = 'd', long = "depth", value_name = "N,..", value_delimiter = ',', default_value = "0")]
    pub depths: Vec<u32>,

    /// Numbers of sequences that generate at once; prompts are measured with one sequence only
    #[arg(short = 'b', long = "batch", value_name = "N,..", value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub batch: Vec<u32>,

    /// Number of measured runs of a test
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: u32,

    /// Largest number of prompt tokens evaluated together [default: 512, or up to 2048 on a
    /// discrete GPU with enough memory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: Option<u32>,

    #[command(flatten)]
    pub place: Place,

    #[command(flatten)]
    pub threads: Threads,

    #[command(flatten)]
    pub adapters: Adapters,

    /// Measure steps of training, in place of prompts and generation: new factors of rank 16 on all
    /// linear layers, --batch examples of --prompt tokens, --precision f32 if none is given
    #[arg(long, conflicts_with_all = ["depths", "generate", "choices"])]
    pub train: bool,

    /// Also time every dispatch of a step of each test, by kernel (needs a GPU with timestamps)
    #[arg(long, conflicts_with = "json")]
    pub profile: bool,

    /// Print a JSON array of objects
    #[arg(long)]
    pub json: bool,
}
