//! Derivative of a product with a weight matrix by the weight.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Input, State, StateKind, Tensor, counted};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering, fixed};
use crate::platform::{in_turns, part};
use gguf::BoxFuture;

kernel! {
    MATMUL_WEIGHT: "matmul_weight",
    wgsl: ["matmul/matmul_weight.wgsl", "shared/step_rows.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, counted: u32, first: u32 },
    bindings: Bind { dy: Read, x: Read, step_rows: Read, g: State },
    cpu: cpu_ref::matmul_weight,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 8192 },
}

/// Rows and columns of the result per workgroup.
const TILE: u32 = 64;

/// g += dy^T x.
#[derive(Clone, Debug)]
pub struct MatmulWeight {
    pub dy: Tensor,
    pub x: Tensor,
    /// Whether rows are never rounded, as in a product that is [exact](crate::ops::matmul_exact()).
    pub exact: bool,
    pub step_rows: Tensor,
    pub g: State,
}

parameters! { MatmulWeight }

/// g[n, k] += sum_t dy[t, n] x[t, k], the derivative of [`matmul`](crate::ops::matmul()) by its
/// weight, over the rows of the step; `dy` [T, N], `x` [T, K], f32; `g` holds [N, K] as plain words
/// of f32.
pub fn matmul_weight(rec: &mut Recorder<impl From<MatmulWeight>>, dy: Tensor, x: Tensor, g: State) {
    derivative(rec, [dy, x], false, g);
}

/// g[n, k] += sum_t dy[t, n] x[t, k], the derivative of
/// [`matmul_exact`](crate::ops::matmul_exact()) by its weight. `dy` and `x` are never rounded.
pub fn matmul_weight_exact(rec: &mut Recorder<impl From<MatmulWeight>>, dy: Tensor, x: Tensor, g: State) {
    derivative(rec, [dy, x], true, g);
}

fn derivative(rec: &mut Recorder<impl From<MatmulWeight>>, [dy, x]: [Tensor; 2], exact: bool, g: State) {
    let words = dy.shape.width() * x.shape.width();
    assert_eq!(rec.kind(g), StateKind::Words(words), "matmul_weight: [{}, {}]", dy.shape.width(), x.shape.width());
    assert_eq!(
        (dy.shape.lead, dy.shape.rows),
        (x.shape.lead, x.shape.rows),
        "matmul_weight: operands of the same rows"
    );
    let step_rows = rec.input(Input::Rows);
    rec.push(MatmulWeight { dy, x, exact, step_rows, g });
}

impl Operation for MatmulWeight {
    fn io(&self) -> Io {
        Io { reads: vec![self.dy, self.x, self.step_rows], writes: vec![] }
    }

    fn work(&self, counts: Counts) -> Work {
        work(self.x.shape.rows_at(counts), [self.dy, self.x].map(|t| t.shape.width()))
    }
}

/// The work of adding the products of `rows` rows to a result of these extents.
pub(crate) fn work(rows: u32, extents: [u32; 2]) -> Work {
    let ([n, k], t) = (extents.map(u64::from), u64::from(rows));
    Work { flops: 2 * t * n * k, bytes: 4 * (t * (n + k) + 2 * n * k), weight_bytes: 0 }
}

impl Lowering for MatmulWeight {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let (n, k) = (self.dy.shape.width(), self.x.shape.width());
        let (counted, first) = counted(self.x.shape);
        let params = Params { k, n, rows: self.x.shape.rows, counted, first };
        let bind = Bind { dy: self.dy.into(), x: self.x.into(), step_rows: self.step_rows.into(), g: self.g.into() };
        vec![bind.dispatch(params, Grid::Tiles { lead: fixed(n, k), tile: TILE, x: k.div_ceil(TILE) })]
    }
}

impl Reference for MatmulWeight {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let extents = [self.dy, self.x].map(|t| t.shape.width() as usize);
            let mut g = host.state_f32(self.g);
            add_products(host.f32(self.dy), host.f32(self.x), extents, &mut g).await;
            host.put_state(self.g, &g);
        })
    }
}

/// g [N, K] += dy^T x, in parallel over the rows of g.
pub(crate) async fn add_products(dy: &[f32], x: &[f32], [n, k]: [usize; 2], g: &mut [f32]) {
    let per_chunk = part(n, 4, dy.len() / n.max(1) * k);
    let compute = |c: usize, g: &mut [f32]| {
        // The columns of dy that make these rows of g.
        let (from, count) = (c * per_chunk, g.len() / k);
        let own: Vec<f32> = dy.chunks_exact(n).flat_map(|row| row[from..from + count].iter().copied()).collect();
        cpu_ref::matmul_weight(&own, x, count, k, g);
    };
    in_turns(g, per_chunk * k, compute).await;
}
