//! Every operation of a model's plans, on a device and on the host.

use super::{Check, Golden, ids};
use anyhow::Result;
use kernels::{Agreement, Device, Executor, Mirror, Precision};
use model::{KvType, Model, SessionOptions};
use std::sync::Arc;
use std::time::Instant;

/// Prompts: rows, and the largest number of rows of a step.
const PROMPTS: [(usize, u32); 6] = [(9, 512), (33, 512), (64, 24), (200, 64), (512, 512), (1536, 512)];
/// Positions before a step of one row.
const DEPTHS: [usize; 3] = [128, 512, 1920];
/// Sequences of batches.
const BATCHES: [usize; 6] = [2, 4, 8, 16, 32, 64];

impl Golden {
    /// Prompts, steps at depths and batches, with the KV types that are rounded.
    pub(super) fn run_nodes(&self, device: &Device, precision: Precision, longest: usize) -> Result<Vec<Check>> {
        let open = || Model::open(self.dir.join(&self.name));
        let (model, host) = (open()?.on(device)?, open()?.on(&Executor::Cpu)?);
        let pattern = ids(&self.meta["ids"])?;
        let prompt = |from: usize, rows: usize| -> Vec<u32> { pattern.iter().copied().cycle().skip(from).take(rows).collect() };
        let longest = longest.min(model.summary().context_length as usize - 1);
        let mut checks = vec![];
        for (kv, name) in [(KvType::F16, "f16"), (KvType::Q8_0, "q8_0")] {
            let options = || SessionOptions::default().kv(kv).precision(precision);
            for (rows, chunk) in PROMPTS.into_iter().filter(|(rows, _)| *rows <= longest) {
                let start = Instant::now();
                let mut session = model.session(options().chunk(chunk))?;
                session.feed(&prompt(0, rows))?;
                let all = session.agree(&mut mirror(&host), None)?;
                checks.push(check(format!("{rows} rows by {chunk}, {name}"), &all, start));
            }
            for depth in DEPTHS.into_iter().filter(|depth| *depth <= longest) {
                let start = Instant::now();
                let mut session = model.session(options().chunk(512))?;
                session.feed(&prompt(0, depth))?;
                session.prefill(None)?;
                session.feed(&prompt(depth, 1))?;
                let all = session.agree(&mut mirror(&host), None)?;
                checks.push(check(format!("a row at {depth}, {name}"), &all, start));
            }
            for sequences in BATCHES {
                let start = Instant::now();
                let mut batch = model.batch(options().chunk(512).sequences(sequences as u32).context(longest.min(256) as u32))?;
                for n in 0..sequences {
                    batch.feed(n as u32, &prompt(n, 1 + n % 7))?;
                }
                let mut all = batch.agree(&mut mirror(&host))?;
                // Now one row of each sequence, at different positions.
                all.extend(batch.agree(&mut mirror(&host))?);
                checks.push(check(format!("{sequences} sequences, {name}"), &all, start));
            }
        }
        Ok(checks)
    }
}

fn mirror(host: &Model) -> Mirror {
    Mirror::new(Arc::clone(host.weights()))
}

/// The operation that is worst, by the ratio of its error to its bound; with an operation that does
/// not hold, its kernels.
fn check(mode: String, all: &[Agreement], start: Instant) -> Check {
    let badness = |a: &&Agreement| if a.holds() { a.difference.nmse / a.bound.max(f64::MIN_POSITIVE) } else { f64::INFINITY };
    let worst = all.iter().max_by(|a, b| badness(a).total_cmp(&badness(b)));
    let (error, bound) = worst.map_or((f64::INFINITY, 0.0), |worst| (worst.difference.nmse, worst.bound));
    let failed: Vec<&Agreement> = all.iter().filter(|a| !a.holds()).collect();
    let mode = match failed.first() {
        Some(first) => format!(
            "{mode}: {} of {} operations, first layer {} {}, {} ({:?})",
            failed.len(),
            all.len(),
            first.layer.map_or("-".to_string(), |layer| layer.to_string()),
            first.kernels.join(" + "),
            first.worst,
            first.difference
        ),
        None => mode,
    };
    Check { mode, worst: error, bound, agrees: failed.is_empty(), kl: None, seconds: start.elapsed().as_secs_f64() }
}
