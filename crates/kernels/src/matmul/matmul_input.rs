//! Derivative of a product with a weight matrix by its activations.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Shape, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering};
use crate::kernel::split::parts;
use gguf::BoxFuture;

kernel! {
    MATMUL_INPUT: "matmul_input",
    wgsl: ["matmul/matmul_input.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, onto: u32 },
    bindings: Bind { dy: Read, w: Weight(Any), dx: Write },
    cpu: cpu_ref::matmul_input,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 8192 },
}

/// Rows of activations, and columns of the weight, per workgroup.
const TILE: u32 = 64;

/// dx = dy w.
#[derive(Clone, Debug)]
pub struct MatmulInput {
    pub w: Weight,
    pub dy: Tensor,
    /// Whether rows are never rounded, as in a product that is [exact](crate::ops::matmul_exact()).
    pub exact: bool,
    pub dx: Tensor,
}

parameters! { MatmulInput }

/// dx[t, k] = sum_n dy[t, n] w[n, k], the derivative of [`matmul`](crate::ops::matmul()) by its
/// rows; `w` [N, K] in any weight format, read as it lies, `dy` [T, N]; returns [T, K], f32.
pub fn matmul_input(rec: &mut Recorder<impl From<MatmulInput>>, w: Weight, dy: Tensor) -> Tensor {
    derivative(rec, w, dy, false)
}

/// dx[t, k] = sum_n dy[t, n] w[n, k], the derivative of
/// [`matmul_exact`](crate::ops::matmul_exact()) by its rows. `dy` is never rounded.
pub fn matmul_input_exact(rec: &mut Recorder<impl From<MatmulInput>>, w: Weight, dy: Tensor) -> Tensor {
    derivative(rec, w, dy, true)
}

fn derivative(rec: &mut Recorder<impl From<MatmulInput>>, w: Weight, dy: Tensor, exact: bool) -> Tensor {
    assert_eq!(dy.shape.width(), w.rows, "matmul_input: rows of {} with a weight of {} rows", dy.shape.width(), w.rows);
    let dx = rec.make(Shape { heads: 1, dim: w.cols, ..dy.shape });
    rec.push(MatmulInput { w, dy, exact, dx });
    dx
}

impl Operation for MatmulInput {
    fn io(&self) -> Io {
        Io { reads: vec![self.dy], writes: vec![self.dx] }
    }

    fn work(&self, counts: Counts) -> Work {
        crate::matmul::product::work(self.w, self.dy, counts)
    }
}

impl Lowering for MatmulInput {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Weight { ty, rows: n, cols: k, .. } = self.w;
        // The parts of a weight add up, in order.
        let one = |(part, range): (usize, std::ops::Range<u32>)| {
            let bind = Bind { dy: self.dy.into(), w: Arg::Weight(self.w, part as u32), dx: self.dx.into() };
            let (row_base, row_count) = (range.start, range.len() as u32);
            let params = Params { k, n, rows: self.dy.shape.rows, row_base, row_count, onto: u32::from(part > 0) };
            bind.dispatch(params, Grid::Tiles { lead: self.dy.shape, tile: TILE, x: k.div_ceil(TILE) })
        };
        parts(cx.caps, ty, n, k).into_iter().enumerate().map(one).collect()
    }
}

impl Reference for MatmulInput {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut dx = host.take(self.dx);
            host.matmul_input(self.w, host.f32(self.dy), &mut dx).await;
            host.put(self.dx, dx);
        })
    }
}
