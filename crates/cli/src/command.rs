//! The command line: all commands, and the arguments that every command takes.

use crate::args::MACHINE;
#[cfg(feature = "web")]
use crate::web;
use crate::{
    bench, completions, devices, doctor, gradients, inspect, list, logits, man, merge, perplexity, pull, rm, run,
    tokenize, train, tune,
};
use clap::{Parser, Subcommand};
use kernels::Without;

/// Runs Gemma and Qwen language models from GGUF files, on any GPU or on the CPU
#[derive(Debug, Parser)]
#[command(name = "weft", version, arg_required_else_help = true, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// Do not read or write the cache folder, which has compiled shaders and the measurements of
    /// `weft devices` and `weft tune`
    ///
    /// The cache folder is $WEFT_CACHE_DIR, else the folder weft in $XDG_CACHE_HOME, ~/.cache,
    /// ~/Library/Caches or %LOCALAPPDATA%.
    #[arg(long, global = true, help_heading = MACHINE)]
    pub no_cache: bool,

    /// Ignore what `weft tune` measured: choose kernels by the defaults of the device class
    #[arg(long, global = true, help_heading = MACHINE)]
    pub no_tune: bool,

    /// Leave out features of the GPU, as if it lacked them: coop (cooperative matrices), subgroups,
    /// f16, with commas between them
    ///
    /// To see how fast other hardware would be, or to go around a fault of a driver. `weft tune`
    /// keeps a table for each set of features.
    #[arg(
        long,
        global = true,
        value_name = "FEATURES",
        env = "WEFT_WITHOUT",
        hide_env_values = true,
        help_heading = MACHINE
    )]
    pub without: Option<Without>,
}

const EXAMPLES: &str = "Examples:
  weft run -p 'Where does Wren live?'     ask the model that weft ships
  weft run qwen3-0.6b                      fetch a known model and chat; weft pull --list shows all
  weft run hf:Qwen/Qwen3-8B-GGUF:Q4_K_M    chat with any GGUF model of Hugging Face's hub
  weft run model.gguf                      chat with a file
  weft run gemma4:e2b                      chat with a model that Ollama has pulled
  weft web                                 chat and train in a browser, with nothing sent anywhere
  weft list                                list the models on this machine
  weft inspect qwen3-8b                    show the contents of a file, and the memory it needs
  weft devices                             list the GPUs of this machine
  weft train --data examples/facts.jsonl -o facts
                                           train an adapter on examples
  weft doctor                              check that this GPU computes what it should
  weft tune                                measure which kernels are fastest on this GPU

`weft help COMMAND` describes a command and all its options.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(run::Args),
    List(list::Args),
    Pull(pull::Args),
    Rm(rm::Args),
    #[cfg(feature = "web")]
    Web(web::Args),
    Inspect(inspect::Args),
    Tokenize(tokenize::Args),
    Logits(logits::Args),
    Perplexity(perplexity::Args),
    Bench(bench::Args),
    Devices(devices::Args),
    Doctor(doctor::Args),
    Gradients(gradients::Args),
    Train(train::Args),
    Merge(merge::Args),
    Tune(tune::Args),
    Completions(completions::Args),
    Man(man::Args),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_argument_is_described() {
        let cli = Cli::command();
        for command in cli.get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            assert!(command.get_after_help().is_some(), "{} has no examples", command.get_name());
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {}", command.get_name(), arg.get_id());
            }
        }
    }
}
