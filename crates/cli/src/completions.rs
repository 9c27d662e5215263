//! `weft completions`: completion scripts for shells.

use anyhow::Result;
use clap::Command;
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

/// Prints the script of this command line.
pub fn run(args: &Args, mut cli: Command) -> Result<()> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut cli, "weft", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
