//! From a recording to a list of dispatches: small passes over data, each a file of its own.

mod absorb;
mod constants;
mod fuse;
mod inline;
mod narrow;
mod place;
mod print;
mod readers;
mod select;
mod split;

pub(crate) use absorb::{Absorbed, Makers};
pub(crate) use fuse::Uses;
pub use place::Placement;
pub use split::parts;

use crate::compose::Kernel;
use crate::device::Caps;
use crate::error::Error;
use crate::exec::StepInput;
use crate::ops::{Op, Operation, Work, attention_split, matmul_coop_glu};
use crate::record::Recorder;
use crate::row::Row;
use crate::tensor::{Counts, Lead, Shape, State, Tensor, Weight};
use std::sync::Arc;

/// What a binding is bound to.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Arg {
    /// Nothing: a small dummy buffer, for bindings that a params flag switches off.
    None,
    /// The same for a binding that is written: a dummy of its own.
    Spare,
    Value(Tensor),
    /// A weight, or the part of it that one binding holds.
    Weight(Weight, u32),
    State(State),
}

impl From<Tensor> for Arg {
    fn from(t: Tensor) -> Self {
        Self::Value(t)
    }
}
impl From<Weight> for Arg {
    fn from(w: Weight) -> Self {
        Self::Weight(w, 0)
    }
}
impl From<Option<Weight>> for Arg {
    fn from(w: Option<Weight>) -> Self {
        w.map_or(Self::None, Self::from)
    }
}
impl From<State> for Arg {
    fn from(s: State) -> Self {
        Self::State(s)
    }
}

/// Workgroups of a dispatch as a function of the row counts, kept as data so that plans can be printed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Grid {
    /// `per_row` workgroups for every row, numbered through the 2-D helper of `shared/grid.wgsl`.
    PerRow { lead: Shape, per_row: u32 },
    /// One thread for each `per_thread` elements, in workgroups of `workgroup`, through the 2-D helper.
    Elements { lead: Shape, workgroup: u32, per_thread: u32 },
    /// `x` column tiles by ceil(rows / `tile`) row tiles.
    Tiles { lead: Shape, tile: u32, x: u32 },
}

/// Lays `n` workgroups out in two dimensions where one, of `max_grid`, is too short; shaders undo it with `shared/grid.wgsl`.
#[must_use]
pub fn grid_2d(n: u64, max_grid: u32) -> [u32; 3] {
    if n <= u64::from(max_grid) {
        return [n as u32, 1, 1];
    }
    let y = n.div_ceil(u64::from(max_grid));
    [n.div_ceil(y) as u32, y as u32, 1]
}

impl Grid {
    /// The workgroups of a run with these row counts, on a device of `max_grid` per dimension.
    #[must_use]
    pub fn at(&self, counts: Counts, max_grid: u32) -> [u32; 3] {
        match *self {
            Self::PerRow { lead, per_row } => grid_2d(u64::from(lead.rows_at(counts)) * u64::from(per_row), max_grid),
            Self::Elements { lead, workgroup, per_thread } => {
                let threads = (u64::from(lead.rows_at(counts)) * u64::from(lead.width())).div_ceil(u64::from(per_thread));
                grid_2d(threads.div_ceil(u64::from(workgroup)), max_grid)
            }
            Self::Tiles { lead, tile, x } => [x, lead.rows_at(counts).div_ceil(tile), 1],
        }
    }
}

/// One kernel call: row, params, bindings by position of the row's list, grid.
#[derive(Clone, Debug)]
pub struct Dispatch {
    pub row: &'static Row,
    pub params: Vec<u8>,
    pub args: Vec<Arg>,
    pub grid: Grid,
    /// The steps that it is for.
    pub when: When,
}

/// Which steps a dispatch is for: an operation may have one form for short contexts and another for long ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    /// Steps whose rows are each of another sequence, all at positions below this one: of the step's keys a row sees its own only.
    Near(u32),
    /// All others.
    Far(u32),
}

impl When {
    /// Whether these steps are the given one's.
    #[must_use]
    pub fn holds(self, input: &StepInput) -> bool {
        let near = |end| {
            let (positions, sequences) = (&input.positions, &input.sequences);
            positions.iter().all(|&at| at < end) && sequences.iter().enumerate().all(|(row, of)| !sequences[..row].contains(of))
        };
        match self {
            Self::Always => true,
            Self::Near(end) => near(end),
            Self::Far(end) => !near(end),
        }
    }
}

impl Dispatch {
    /// The tensors this dispatch reads or writes.
    pub fn tensors(&self, writes: bool) -> impl Iterator<Item = Tensor> + '_ {
        let bound = self.row.bindings.iter().zip(&self.args);
        bound.filter_map(move |((_, access), arg)| match arg {
            Arg::Value(t) if access.writes() == writes => Some(*t),
            _ => None,
        })
    }
}

/// What lowering an operation may look at.
pub struct Lower<'a> {
    pub caps: &'a Caps,
    /// Capacities of the plan.
    pub capacity: Counts,
    /// Whether values may be rounded; see [`PlanOptions::fast`].
    pub fast: bool,
}

/// What a plan is asked for.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// Names of taps to read back; a requested tap ends a fusion there.
    pub taps: Vec<String>,
    /// Run every operation as recorded.
    pub unfused: bool,
    /// Use portable rows only, whatever the device can do.
    pub portable: bool,
    /// Round activations where that is faster: to 8 bits for the products of a few rows with quantized weights, to f16 (with a scale for
    /// each row) for those of many rows where there are cooperative matrices.
    pub fast: bool,
    /// Compile the kernels of a plan of few rows for their params, and, where the states hold one sequence, for that: more pipelines, less code in each
    /// and nothing to wait for before addresses are known.
    pub constants: bool,
    /// Sequences that the states hold; 0 where the plan is for any number.
    pub sequences: u32,
    /// Leave room behind every intermediate, so that [`crate::Plan::overrun`] shows writes past its end.
    pub guarded: bool,
}

/// A dispatch in its place.
#[derive(Clone, Debug)]
pub struct Step {
    pub dispatch: Dispatch,
    pub kernel: Kernel,
    pub layer: Option<u32>,
    /// The operation behind the dispatch.
    pub op: Arc<Op>,
    /// Dispatches that the operation became, of those that run together.
    pub share: u64,
}

impl Step {
    /// This dispatch's part of its operation's work, which does not know the positions: what attention reads of the states
    /// is counted by [`crate::profile`].
    #[must_use]
    pub fn work(&self, counts: Counts) -> Work {
        self.op.work(counts).divided(self.share)
    }
}

/// A compiled plan: dispatches, buffers, and what is read back. Still plain data; an executor binds it.
#[derive(Clone, Debug)]
pub struct Planned {
    pub capacity: Counts,
    /// Sequences that its states must hold; 0 for any number.
    pub sequences: u32,
    /// Workgroups per dimension of the device that the plan is for.
    pub max_grid: u32,
    pub steps: Vec<Step>,
    pub placement: Placement,
    /// Tensors read back after a run: outputs first, then the requested taps.
    pub read_back: Vec<Tensor>,
}

/// Which taps of a recording were asked for.
#[must_use]
pub fn requested<'a>(rec: &'a Recorder, options: &'a PlanOptions) -> Vec<&'a crate::record::Tap> {
    rec.taps.iter().filter(|t| options.taps.iter().any(|name| name == t.name)).collect()
}

/// Runs all passes.
///
/// # Errors
/// [`Error::BindingTooLarge`] for an intermediate that no binding of this device can hold.
pub fn plan(rec: &Recorder, caps: &Caps, options: &PlanOptions) -> Result<Planned, Error> {
    let mut read_back = rec.outputs.clone();
    read_back.extend(requested(rec, options).iter().map(|t| t.tensor));
    let nodes = if options.unfused { rec.nodes.clone() } else { fuse::fuse(rec, &read_back, caps) };
    let mut origins = rec.origins.clone();
    let nodes = if options.fast { narrow::narrow(nodes, &mut origins, caps) } else { nodes };
    let nodes = match options.unfused {
        true => nodes,
        false => {
            let nodes = matmul_coop_glu::join(nodes, &mut origins, &read_back, caps);
            let nodes = absorb::absorb(attention_split::split(nodes, &mut origins, caps), &read_back, &rec.states, caps);
            readers::pack(inline::inline(nodes, caps), &read_back, caps)
        }
    };
    let cx = Lower { caps, capacity: rec.capacity, fast: options.fast };
    let threads = if options.portable { 0 } else { caps.subgroup_threads() };
    let mut steps = vec![];
    for node in &nodes {
        let lowered = node.op.lower(&cx);
        let op = Arc::new(node.op.clone());
        let together = |when: When| lowered.iter().filter(|d| d.when == when).count() as u64;
        let shares: Vec<u64> = lowered.iter().map(|d| together(d.when)).collect();
        for (dispatch, share) in lowered.into_iter().zip(shares) {
            let kernel = select::kernel(&dispatch, &rec.states, threads);
            steps.push(Step { dispatch, kernel, layer: node.layer, op: Arc::clone(&op), share });
        }
    }
    if options.constants && rec.capacity.step <= constants::MOST_ROWS {
        constants::give(&mut steps, options.sequences);
    }
    let placement = place::place(&steps, &origins, &read_back);
    for (n, &bytes) in placement.buffers.iter().enumerate() {
        if bytes > caps.max_binding_bytes {
            return Err(Error::BindingTooLarge { what: format!("intermediate buffer {n}"), bytes, limit: caps.max_binding_bytes });
        }
    }
    Ok(Planned { capacity: rec.capacity, sequences: options.sequences, max_grid: caps.max_grid, steps, placement, read_back })
}

impl Planned {
    /// Bytes of intermediate buffers.
    #[must_use]
    pub fn intermediate_bytes(&self) -> u64 {
        self.placement.buffers.iter().sum()
    }
}

/// A fixed number of rows, for grids that do not follow the step.
#[must_use]
pub fn fixed(rows: u32, width: u32) -> Shape {
    Shape::new(Lead::Fixed, rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_past_one_dimension_covers_every_workgroup_once() {
        for n in [1, 65_535, 65_536, 151_936, 4_000_000_000_u64] {
            let [x, y, _] = grid_2d(n, 65_535);
            assert!(u64::from(x) * u64::from(y) >= n && x <= 65_535 && u64::from(x) * u64::from(y - 1) < n, "{n}: {x} x {y}");
        }
    }

    #[test]
    fn a_step_is_near_where_every_row_has_a_sequence_and_no_position_is_too_far() {
        let step = |positions: &[u32], sequences: &[u32]| StepInput {
            positions: positions.to_vec(),
            sequences: sequences.to_vec(),
            ..StepInput::default()
        };
        for (step, near) in [
            (step(&[0, 99], &[3, 1]), true),
            (step(&[0, 100], &[3, 1]), false),
            (step(&[4, 5], &[1, 1]), false),
            (step(&[4, 5, 6], &[1, 2, 1]), false),
        ] {
            assert_eq!((When::Near(100).holds(&step), When::Far(100).holds(&step), When::Always.holds(&step)), (near, !near, true));
        }
    }
}
