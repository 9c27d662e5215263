//! The command `weft`: models from GGUF files at a terminal, in scripts and under a benchmark.
//!
//! The only `unsafe` code is the call of `set_var` in [`quiet_drivers`], which runs first in
//! `main`, before there is any other thread that could read the environment, and the question in
//! [`interrupt`] whether a signal is ignored.

mod args;
mod bench;
mod cache;
mod command;
mod completions;
mod devices;
mod doctor;
mod executor;
mod exit;
mod factors;
mod gradients;
mod habits;
mod hub;
mod inspect;
mod interrupt;
mod known;
mod list;
mod logits;
mod lora;
mod man;
mod merge;
mod npy;
mod open;
mod output;
mod perplexity;
mod progress;
mod pull;
mod rm;
mod run;
mod steps;
mod text;
mod tokenize;
mod train;
mod tune;
#[cfg(feature = "web")]
mod web;

use clap::{CommandFactory, Parser};
use command::{Cli, Command};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    quiet_drivers();
    let known = Cli::command();
    let cli = match habits::ours(std::env::args_os(), &known) {
        Ok(ours) => {
            ours.notes.iter().for_each(|said| exit::note(said));
            match train::again::with_kept(ours.words, &known) {
                Ok(words) => parsed(words),
                Err(error) => return exit::code(Err(error)),
            }
        }
        Err(instead) => return exit::code(Err(exit::usage(instead))),
    };
    if cli.no_cache {
        cache::switch_off();
    }
    if cli.no_tune {
        cache::choose_as_usual();
    }
    cli.without.into_iter().for_each(executor::leave_out);
    let result = interrupt::install().and_then(|()| match cli.command {
        Command::Run(args) => run::run(args),
        Command::List(args) => list::run(&args),
        Command::Pull(args) => pull::run(&args),
        Command::Rm(args) => rm::run(&args),
        #[cfg(feature = "web")]
        Command::Web(args) => web::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Tokenize(args) => tokenize::run(&args),
        Command::Logits(args) => logits::run(&args),
        Command::Perplexity(args) => perplexity::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Gradients(args) => gradients::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
    });
    cache::save();
    exit::code(result)
}

/// The command line. `weft train` keeps its words in the folder of the run.
fn parsed(words: Vec<OsString>) -> Cli {
    let mut cli = Cli::parse_from(&words);
    if let Command::Train(args) = &mut cli.command {
        args.words = words.into_iter().skip_while(|word| word != "train").skip(1).collect();
    }
    cli
}

/// Switches Mesa's device-select layer off where there is no desktop session, unless the user
/// configures the layer. The layer asks a Wayland compositor for the preferred GPU; without a
/// session it prints on stderr that `XDG_RUNTIME_DIR` is not set.
fn quiet_drivers() {
    let session = std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|folder| Path::new(&folder).is_absolute());
    let steered =
        ["NODEVICE_SELECT", "MESA_VK_DEVICE_SELECT", "DRI_PRIME"].iter().any(|name| std::env::var_os(name).is_some());
    if cfg!(target_os = "linux") && !session && !steered {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    }
}
