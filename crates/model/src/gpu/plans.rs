//! The plans of a session: for which numbers of rows it has one.

use crate::options::SessionOptions;
use crate::recording::{Head, PlanKey};
use kernels::{Class, Executor, Table};

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
        std::iter::successors(least, |rows| rows.checked_mul(2)).take_while(|&rows| rows < options.most_rows());
    let halfway = doubled.clone().filter(|&rows| rows >= Table::HALFWAY_ROWS).map(|rows| rows + rows / 2);
    let further = Table::FURTHER_ROWS.into_iter().filter(|&rows| least.is_some_and(|least| rows >= least));
    let halfway = halfway.chain(further).filter(|&rows| rows < options.most_rows());
    let mut rows: Vec<u32> = doubled.chain(halfway).chain([1, options.sequences, options.most_rows()]).collect();
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
pub(crate) fn rows_with_logits(vocabulary: u32, executor: &Executor, options: &SessionOptions) -> u32 {
    let row = 4 * u64::from(vocabulary);
    let limit = match executor {
        Executor::Gpu(device) => device.caps().max_binding_bytes.min(64 << 20),
        Executor::Cpu => 64 << 20,
    };
    ((limit / row) as u32).clamp(1, options.chunk)
}

/// The key of the smallest plan that has room for `rows` rows, of plans with these capacities.
/// Plans that output the logits of every row have at most `with_logits` rows.
pub(crate) fn key(with_logits: u32, options: &SessionOptions, capacities: &[u32], rows: usize, head: Head) -> PlanKey {
    let most = if head == Head::Logits { with_logits } else { u32::MAX };
    let fitting = capacities.iter().map(|&capacity| capacity.min(most)).find(|&capacity| capacity as usize >= rows);
    let rows = fitting.unwrap_or(rows as u32);
    let out = if head == Head::Logits { rows } else { options.sequences.min(rows) };
    PlanKey { rows, out, head }
}
