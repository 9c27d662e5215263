//! `weft completions`: completion scripts for shells.

use crate::args::Cli;
use anyhow::Result;
use clap::CommandFactory;
use std::io::Write;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft completions bash > ~/.local/share/bash-completion/completions/weft
  weft completions zsh > ~/.zfunc/_weft
  weft completions fish > ~/.config/fish/completions/weft.fish")]
pub struct Args {
    /// The shell
    shell: clap_complete::Shell,
}

pub fn run(args: &Args) -> Result<()> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), "weft", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
