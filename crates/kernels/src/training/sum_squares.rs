//! Sum of the squares of the words of several states: the squared norm of all gradients.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{State, StateKind, Tensor};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering, fixed};

kernel! {
    SUM_SQUARES: "sum_squares",
    wgsl: ["training/sum_squares.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { n: u32, each: u32, at: u32, plain: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::sum_squares,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// Words per workgroup.
const EACH: u32 = 1 << 14;

/// y = the sum of the squares of all words.
#[derive(Clone, Debug)]
pub struct SumSquares {
    /// The states, with their number of words.
    pub of: Vec<(State, u32)>,
    /// Sums of parts, between the kernels.
    pub parts: Tensor,
    pub y: Tensor,
}

parameters! { SumSquares }

/// y = the sum of the squares of the words of all states `of`, as f32, added in a fixed order;
/// returns \[1\], f32.
///
/// # Panics
/// When a state is not of plain words.
pub fn sum_squares(rec: &mut Recorder<impl From<SumSquares>>, of: &[State]) -> Tensor {
    let words = |&state: &State| {
        let StateKind::Words(words) = rec.kind(state) else { panic!("sum_squares of {:?}", rec.kind(state)) };
        (state, words)
    };
    let of: Vec<(State, u32)> = of.iter().map(words).collect();
    let parts: u32 = of.iter().map(|(_, words)| words.div_ceil(EACH)).sum();
    assert!(parts > 0, "sum_squares of no words");
    let (parts, y) = (rec.make(fixed(1, parts)), rec.make(fixed(1, 1)));
    rec.push(SumSquares { of, parts, y });
    y
}

impl Operation for SumSquares {
    // The parts are no result.
    fn io(&self) -> Io {
        Io { reads: vec![], writes: vec![self.y] }
    }
}

impl Lowering for SumSquares {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let call = |x: Arg, y: Tensor, params: Params| {
            let grid = Grid::PerRow { lead: fixed(params.n.div_ceil(params.each), 1), per_row: 1 };
            Bind { x, y: y.into() }.dispatch(params, grid)
        };
        let mut at = 0;
        let mut all: Vec<Dispatch> = vec![];
        for &(state, n) in &self.of {
            all.push(call(state.into(), self.parts, Params { n, each: EACH, at, plain: 0 }));
            at += n.div_ceil(EACH);
        }
        all.push(call(self.parts.into(), self.y, Params { n: at, each: at, at: 0, plain: 1 }));
        all
    }
}

impl Reference for SumSquares {
    fn reference(&self, host: &mut Host<'_>) {
        let words: Vec<Vec<f32>> = self.of.iter().map(|(state, _)| host.state_f32(*state)).collect();
        let slices: Vec<&[f32]> = words.iter().map(Vec::as_slice).collect();
        host.put(self.y, vec![cpu_ref::sum_squares(&slices) as f32]);
    }
}
