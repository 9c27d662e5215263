//! A kernel call: its bindings, its number of workgroups, and the steps in which it runs.

use crate::caps::Caps;
use crate::graph::input::{StepInput, apart, is_deep};
use crate::graph::tensor::{Counts, Lead, Shape, State, Tensor, Weight};
use crate::kernel::Variant;

/// The resource of a binding.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Arg {
    /// Nothing: a small dummy buffer, for bindings that a params flag disables.
    None,
    /// Nothing, for a binding that is written: a dummy buffer of its own.
    Spare,
    Value(Tensor),
    /// A weight, or the part of a weight that one binding holds.
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

/// The workgroups of a dispatch as a function of the row counts. It is data, so that plans can be
/// printed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Grid {
    /// `per_row` workgroups for every row, numbered through the 2-D helper of `shared/grid.wgsl`.
    PerRow { lead: Shape, per_row: u32 },
    /// One thread for each `per_thread` elements, in workgroups of `workgroup`, through the 2-D
    /// helper.
    Elements { lead: Shape, workgroup: u32, per_thread: u32 },
    /// `x` column tiles by ceil(rows / `tile`) row tiles.
    Tiles { lead: Shape, tile: u32, x: u32 },
}

/// Arranges `n` workgroups in two dimensions if one dimension, of `max_grid`, is too short. Shaders
/// compute the number back with `shared/grid.wgsl`.
#[must_use]
pub fn grid_2d(n: u64, max_grid: u32) -> [u32; 3] {
    if n <= u64::from(max_grid) {
        return [n as u32, 1, 1];
    }
    let y = n.div_ceil(u64::from(max_grid));
    [n.div_ceil(y) as u32, y as u32, 1]
}

impl Grid {
    /// The workgroups of a run with these row counts, on a device with `max_grid` workgroups per
    /// dimension.
    #[must_use]
    pub fn at(&self, counts: Counts, max_grid: u32) -> [u32; 3] {
        match *self {
            Self::PerRow { lead, per_row } => grid_2d(u64::from(lead.rows_at(counts)) * u64::from(per_row), max_grid),
            Self::Elements { lead, workgroup, per_thread } => {
                let threads =
                    (u64::from(lead.rows_at(counts)) * u64::from(lead.width())).div_ceil(u64::from(per_thread));
                grid_2d(threads.div_ceil(u64::from(workgroup)), max_grid)
            }
            Self::Tiles { lead, tile, x } => [x, lead.rows_at(counts).div_ceil(tile), 1],
        }
    }
}

/// One kernel call: the variant, the params, the bindings in the order of the kernel's list, and
/// the grid.
#[derive(Clone, Debug)]
pub struct Dispatch {
    pub variant: &'static Variant,
    pub params: Vec<u8>,
    pub args: Vec<Arg>,
    pub grid: Grid,
    /// The steps in which it runs.
    pub when: When,
}

/// The steps in which a dispatch runs: an operation may have one form for short contexts and
/// another for long contexts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    /// Steps whose rows are each of another sequence, all at positions below this one. Of the keys
    /// of the step, such a row sees only its own.
    Near(u32),
    /// Steps with several rows of a sequence, all rows at or after this position.
    Deep(u32),
    /// Steps that are not near and not deep. 0 and `u32::MAX` are the ends of forms that do not
    /// exist.
    Far {
        near: u32,
        deep: u32,
    },
}

impl When {
    /// Whether the dispatch runs in this step.
    #[must_use]
    pub fn holds(self, input: &StepInput) -> bool {
        let near = |end| input.positions.iter().all(|&at| at < end) && apart(&input.sequences);
        let deep = |from| is_deep(from, &input.positions, &input.sequences);
        match self {
            Self::Always => true,
            Self::Near(end) => near(end),
            Self::Deep(from) => deep(from),
            Self::Far { near: end, deep: from } => !near(end) && !deep(from),
        }
    }

    /// Steps that are not near.
    #[must_use]
    pub const fn far(near: u32) -> Self {
        Self::Far { near, deep: u32::MAX }
    }
}

impl Dispatch {
    /// The tensors that this dispatch reads or writes.
    pub fn tensors(&self, writes: bool) -> impl Iterator<Item = Tensor> + '_ {
        let bound = self.variant.kernel.bindings.iter().zip(&self.args);
        bound.filter_map(move |((_, access), arg)| match arg {
            Arg::Value(t) if access.writes() == writes => Some(*t),
            _ => None,
        })
    }
}

/// An operation that kernels compute.
pub trait Lowering {
    /// The kernel calls of the operation on this device.
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch>;
}

/// What the lowering of an operation may depend on.
pub struct Lower<'a> {
    pub caps: &'a Caps,
    /// Largest row counts of the plan.
    pub capacity: Counts,
    /// Whether values may be rounded; see [`Precision::Fast`](crate::Precision::Fast).
    pub fast: bool,
}

/// A fixed number of rows, for grids that do not depend on the step.
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
            assert!(
                u64::from(x) * u64::from(y) >= n && x <= 65_535 && u64::from(x) * u64::from(y - 1) < n,
                "{n}: {x} x {y}"
            );
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
            assert_eq!(
                (When::Near(100).holds(&step), When::far(100).holds(&step), When::Always.holds(&step)),
                (near, !near, true)
            );
        }
    }

    #[test]
    fn a_step_is_deep_where_rows_share_a_sequence_and_every_position_is_far() {
        let step = |positions: &[u32], sequences: &[u32]| StepInput {
            positions: positions.to_vec(),
            sequences: sequences.to_vec(),
            ..StepInput::default()
        };
        let far = When::Far { near: 0, deep: 100 };
        for (step, deep) in [
            (step(&[100, 101], &[1, 1]), true),
            (step(&[99, 100], &[1, 1]), false),
            (step(&[100, 101], &[1, 2]), false),
            (step(&[200, 100, 201], &[1, 2, 1]), true),
        ] {
            assert_eq!((When::Deep(100).holds(&step), far.holds(&step)), (deep, !deep));
        }
    }
}
