//! `weft man`: manual pages.

use crate::exit::usage;
use anyhow::{Context, Result};
use clap::{Command, ValueHint};
use std::io::Write;
use std::path::PathBuf;

/// Print a manual page
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  weft man | man -l -                     read the manual page of weft
  weft man run | man -l -                 read the manual page of weft run
  weft man --all ~/.local/share/man/man1  write every page")]
pub struct Args {
    /// Print the page of this command [default: weft itself]
    command: Option<String>,

    /// Write the pages of all commands into this folder, instead of printing one
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath, conflicts_with = "command")]
    all: Option<PathBuf>,
}

/// Prints a page of this command line.
pub fn run(args: &Args, cli: Command) -> Result<()> {
    let mut cli = cli.disable_help_subcommand(true);
    cli.build();
    if let Some(folder) = &args.all {
        let failed = || format!("cannot write manual pages to {}", folder.display());
        std::fs::create_dir_all(folder).with_context(failed)?;
        return clap_mangen::generate_to(cli, folder).with_context(failed);
    }
    let command = match &args.command {
        None => cli,
        Some(name) => {
            let known = cli.get_subcommands().map(Command::get_name).collect::<Vec<_>>().join(", ");
            let found =
                cli.find_subcommand(name).ok_or_else(|| usage(format!("no command \"{name}\"; there are {known}")))?;
            found.clone()
        }
    };
    let title = command.get_display_name().unwrap_or("weft").to_uppercase();
    let mut page = vec![];
    clap_mangen::Man::new(command).title(title).render(&mut page)?;
    Ok(std::io::stdout().write_all(&page)?)
}
