//! `weft train`: from a file of examples to an adapter, or to a model.

pub mod again;
mod args;
mod curve;
mod differs;
mod dry;
mod examples;
mod rehearse;
mod report;
mod results;
mod run;
mod samples;
mod settings;

use crate::exit::usage;
use anyhow::Result;
use args::Held;
pub use args::{Args, Learnt};

pub fn run(args: &Args) -> Result<()> {
    if args.streams() {
        let refused = [
            (args.data.len() > 1, "--data - is one source; give no other file"),
            (args.resume, "--resume needs --data of a file: what came from stdin is gone"),
            (args.epochs.is_some_and(|n| n > 1), "--data - is read once; --epochs needs a file"),
            (matches!(args.val, Some(Held::Share(_))), "--val takes a share of a file; name a file of its own"),
            (args.dry_run, "--dry-run needs --data of a file"),
            (args.rehearse.is_some(), "--rehearse needs --data of a file"),
            (args.patience.is_some() && args.val.is_none(), "--patience with --data - needs --val FILE"),
        ];
        if let Some((_, why)) = refused.into_iter().find(|(is, _)| *is) {
            return Err(usage(why));
        }
    }
    args.threads.apply()?;
    run::run(args)
}
