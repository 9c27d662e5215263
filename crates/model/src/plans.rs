//! The plans of a session: for which numbers of rows it has one, and what each plan records.

use crate::adapter::Adapted;
use crate::arch::{Architecture, Logits};
use crate::model::{Model, record};
use crate::session::SessionOptions;
use kernels::ops::{penalize, sample};
use kernels::{Class, Counts, Executor, Outputs, Recorder, StateKind, Table};

/// The output of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Head {
    /// The logits of every row.
    Logits,
    /// A drawn id and its log-probability for each row in `out_rows`. The id is also written to the
    /// token state, where the next step reads it.
    Sample { penalize: bool },
}

/// Identifies a plan by its capacity and head.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlanKey {
    pub rows: u32,
    pub out: u32,
    pub head: Head,
}

/// Steps in flight on a GPU. They are enough to hide a read-back, and so few that a late stop
/// wastes little work.
pub(crate) const GPU_DEPTH: usize = 4;

/// The length of a ring is a multiple of this: the keys of one tile of the attention kernel.
const RING_TILE: u32 = 128;

/// Positions that the ring of a window holds, in whole tiles. The ring has room for the window, the
/// rows of the largest step and the steps in flight. Rows that a step does not need are slack for
/// rollbacks.
pub(crate) fn ring_rows(window: u32, options: &SessionOptions) -> u32 {
    let ahead = most_rows(options).saturating_add(GPU_DEPTH as u32);
    window.saturating_add(ahead).checked_next_multiple_of(RING_TILE).unwrap_or(u32::MAX)
}

/// The largest number of rows of a step.
pub(crate) fn most_rows(options: &SessionOptions) -> u32 {
    options.sequences.max(options.chunk)
}

/// Rows of the smallest plan between one row and a chunk.
const LEAST_ROWS: u32 = 2;

/// The rows of the plans that draw, rising: one row, one row for each sequence, a chunk, the powers
/// of two between, the numbers halfway between large powers of two, and [`Table::FURTHER_ROWS`]. A
/// step takes the smallest plan that holds its rows, so a short prompt gets the kernels of few
/// rows. Software drivers take seconds to build the kernels of a plan, so they have no plans
/// between unless the options ask for them. On the CPU all plans are alike.
pub(crate) fn capacities(executor: &Executor, options: &SessionOptions) -> Vec<u32> {
    let usual = match executor {
        Executor::Gpu(device) if device.adapter().class != Class::Software => Some(LEAST_ROWS),
        _ => None,
    };
    let least = options.least_rows.or(usual).map(u32::next_power_of_two);
    let doubled =
        std::iter::successors(least, |rows| rows.checked_mul(2)).take_while(|&rows| rows < most_rows(options));
    let halfway = doubled.clone().filter(|&rows| rows >= Table::HALFWAY_ROWS).map(|rows| rows + rows / 2);
    let further = Table::FURTHER_ROWS.into_iter().filter(|&rows| least.is_some_and(|least| rows >= least));
    let halfway = halfway.chain(further).filter(|&rows| rows < most_rows(options));
    let mut rows: Vec<u32> = doubled.chain(halfway).chain([1, options.sequences, most_rows(options)]).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// The keys of all plans that a generating session makes.
pub(crate) fn sampling_keys(executor: &Executor, options: &SessionOptions) -> Vec<PlanKey> {
    let key = |rows| PlanKey { rows, out: options.sequences.min(rows), head: Head::Sample { penalize: true } };
    capacities(executor, options).into_iter().map(key).collect()
}

/// Most rows of a step that outputs the logits of every row. They fit into a binding and 64 MiB.
pub(crate) fn rows_with_logits(model: &Model, options: &SessionOptions) -> u32 {
    let row = 4 * u64::from(model.summary().vocabulary);
    let limit = match model.executor() {
        Executor::Gpu(device) => device.caps().max_binding_bytes.min(64 << 20),
        Executor::Cpu => 64 << 20,
    };
    ((limit / row) as u32).clamp(1, options.chunk)
}

/// The key of the smallest plan that has room for `rows` rows, of plans with these capacities.
pub(crate) fn key(model: &Model, options: &SessionOptions, capacities: &[u32], rows: usize, head: Head) -> PlanKey {
    let most = if head == Head::Logits { rows_with_logits(model, options) } else { u32::MAX };
    let fitting = capacities.iter().map(|&capacity| capacity.min(most)).find(|&capacity| capacity as usize >= rows);
    let rows = fitting.unwrap_or(rows as u32);
    let out = if head == Head::Logits { rows } else { options.sequences.min(rows) };
    PlanKey { rows, out, head }
}

/// Records the step of a key.
pub(crate) fn recording(
    architecture: &dyn Architecture,
    adapted: &Adapted,
    kinds: &[StateKind],
    key: PlanKey,
) -> Recorder {
    let capacity = Counts { step: key.rows, out: key.out };
    match key.head {
        Head::Logits => record(architecture, adapted, Recorder::new(capacity, kinds), Logits::All, false).0,
        Head::Sample { penalize: penalized } => {
            let (mut rec, raw) = record(architecture, adapted, Recorder::new(capacity, kinds), Logits::Rows, true);
            let tokens = rec.state(0);
            let logits = if penalized { penalize(&mut rec, raw, tokens) } else { raw };
            let drawn = sample(&mut rec, logits, raw, tokens);
            rec.output(drawn);
            rec
        }
    }
}

/// The results of a step that draws: (id, log-probability) for each row in `out_rows`.
pub(crate) fn drawn(outputs: &Outputs) -> impl Iterator<Item = (u32, f32)> {
    outputs.0[0].chunks_exact(2).map(|row| (row[0], f32::from_bits(row[1])))
}
