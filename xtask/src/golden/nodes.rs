//! Every operation of a model's plans, on a device and on the host.

use super::args::Args;
use super::check::Check;
use anyhow::Result;
use kernels::{Agreement, Device, Executor, Mirror, Precision};
use model::{KvType, Model, SessionOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Prompts: rows, and the largest number of rows of a step.
const PROMPTS: [(usize, u32); 7] = [(9, 512), (33, 512), (64, 24), (200, 64), (512, 512), (1536, 512), (2048, 512)];
/// Positions before a step of one row.
const DEPTHS: [usize; 4] = [128, 512, 1920, 4096];
/// Sequences of batches.
const BATCHES: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// A model file whose operations are compared.
pub(super) struct Nodes<'a> {
    path: &'a Path,
    /// The tokens of the prompts, repeated.
    pattern: Vec<u32>,
    precision: Precision,
    longest: usize,
}

/// Tokens of a pattern that no fixture gives.
const RANDOM: usize = 4099;

impl<'a> Nodes<'a> {
    pub fn of(path: &'a Path, pattern: Vec<u32>, args: &Args) -> Self {
        Self { path, pattern, precision: args.precision(), longest: args.longest }
    }

    /// The file at `path`, with random tokens that are equal in every run.
    pub fn random(path: &'a Path, args: &Args) -> Result<Self> {
        let vocabulary = Model::open(path)?.tokenizer().vocab_size() as u32;
        let mut state = 1_u32;
        let mut token = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % vocabulary
        };
        Ok(Self::of(path, (0..RANDOM).map(|_| token()).collect(), args))
    }

    /// Prompts, steps at depths and batches, with the KV types that are rounded.
    pub fn each(&self, device: &Device, take: &mut dyn FnMut(Check)) -> Result<()> {
        let open = || Model::open(self.path);
        let (model, host) = (open()?.on(device)?, open()?.on(&Executor::Cpu)?);
        let prompt = |from: usize, rows: usize| -> Vec<u32> {
            self.pattern.iter().copied().cycle().skip(from).take(rows).collect()
        };
        let longest = self.longest.min(model.summary().context_length as usize - 1);
        for (kv, name) in [(KvType::F16, "f16"), (KvType::Q8_0, "q8_0")] {
            let options = || SessionOptions::default().kv(kv).precision(self.precision);
            for (rows, chunk) in PROMPTS.into_iter().filter(|(rows, _)| *rows <= longest) {
                let start = Instant::now();
                let mut session = model.session(options().chunk(chunk))?;
                session.feed(&prompt(0, rows))?;
                let all = session.agree(&mut mirror(&host), None)?;
                take(check(format!("{rows} rows by {chunk}, {name}"), &all, start));
            }
            for depth in DEPTHS.into_iter().filter(|depth| *depth <= longest) {
                let start = Instant::now();
                let mut session = model.session(options().chunk(512))?;
                session.feed(&prompt(0, depth))?;
                session.prefill(None)?;
                session.feed(&prompt(depth, 1))?;
                let all = session.agree(&mut mirror(&host), None)?;
                take(check(format!("a row at {depth}, {name}"), &all, start));
            }
            for sequences in BATCHES {
                let start = Instant::now();
                let mut batch =
                    model.batch(options().chunk(512).sequences(sequences as u32).context(longest.min(256) as u32))?;
                for n in 0..sequences {
                    batch.feed(n as u32, &prompt(n, 1 + n % 7))?;
                }
                let mut all = batch.agree(&mut mirror(&host))?;
                // Now one row of each sequence, at different positions.
                all.extend(batch.agree(&mut mirror(&host))?);
                take(check(format!("{sequences} sequences, {name}"), &all, start));
            }
        }
        Ok(())
    }
}

fn mirror(host: &Model) -> Mirror {
    Mirror::new(Arc::clone(host.weights()))
}

/// The operation that is worst, by the ratio of its error to its bound; with an operation that does
/// not hold, its kernels.
fn check(mode: String, all: &[Agreement], start: Instant) -> Check {
    let worst = all.iter().max_by(|a, b| a.share().total_cmp(&b.share()));
    let (error, bound) = worst.map_or((f64::INFINITY, 0.0), |worst| (worst.error(), worst.bound));
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
    Check {
        mode,
        worst: error,
        bound,
        agrees: failed.is_empty(),
        kl: None,
        flips: None,
        seconds: start.elapsed().as_secs_f64(),
    }
}
