//! `--dry-run`: what a run would take, and what it would learn.

use super::args::Args;
use super::run::{Start, named};
use crate::progress::Bar;
use anyhow::Result;
use indicatif::HumanDuration;
use kernels::Watch;
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};
use train::{Piece, Trainer};

/// Examples that are shown.
const SHOWN: u64 = 5;

/// Times a step, and prints the time of all steps and some examples. The memory was told before.
pub fn run(args: &Args, mut start: Start) -> Result<()> {
    let each = step(args, &mut start)?;
    let all = start.settings.ending.steps.map(|steps| each.mul_f64(steps as f64));
    let mut shown = vec![];
    for n in 0..SHOWN {
        shown.extend(start.examples.shown(n)?);
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let piece = |Piece { text, learnt }: &Piece| json!({ "text": text, "learnt": learnt });
        let pieces = |pieces: &Vec<Piece>| pieces.iter().map(piece).collect::<Vec<_>>();
        let examples: Vec<_> = shown.iter().map(pieces).collect();
        let object = json!({
            "steps": start.settings.ending.steps, "seconds_per_step": each.as_secs_f64(), "seconds": all.map(|all| all.as_secs_f64()),
            "memory_bytes": start.memory.total(), "free_bytes": start.free, "examples": examples,
        });
        return Ok(writeln!(out, "{object}")?);
    }
    let all = all.map_or_else(String::new, |all| format!(", about {} in all", HumanDuration(all)));
    writeln!(out, "time      {:.2} s for one step{all}", each.as_secs_f64())?;
    let marks = if out.is_terminal() { ["\u{1b}[7m", "\u{1b}[0m"] } else { ["⟦", "⟧"] };
    for (n, pieces) in shown.iter().enumerate() {
        writeln!(out, "\nexample {}; learnt is {}what is marked{}", n + 1, marks[0], marks[1])?;
        for Piece { text, learnt } in pieces {
            let text = printable(text);
            let marked = if *learnt { format!("{}{text}{}", marks[0], marks[1]) } else { text };
            write!(out, "{marked}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The time of the second of two steps, whose changes are dropped: the first one builds pipelines.
fn step(args: &Args, start: &mut Start) -> Result<Duration> {
    let _bar = Bar::count("timing a step");
    let mut trainer = named(args, Trainer::new(&start.model, start.settings.method.clone(), &start.settings.options))?;
    let Some(batch) = start.examples.next(args.batch)? else { return Ok(Duration::ZERO) };
    let mut took = Duration::ZERO;
    for _ in 0..2 {
        let began = Instant::now();
        named(args, trainer.step(&batch, Watch::default()))?;
        took = began.elapsed();
    }
    Ok(took)
}

/// Text without control characters that a terminal would obey.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() && c != '\n' { c.escape_default().collect() } else { vec![c] })
        .collect()
}
