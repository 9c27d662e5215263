//! Derivative of products with experts' weights by the rows of the slots. Many rows go in tiles by
//! expert; few rows go to `matmul_vec_experts_input`.

use super::matmul_experts::MatmulExperts;
use super::matmul_vec_experts_input;
use super::route::Routes;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Shape, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering, fixed};
use crate::kernel::split::parts;
use crate::platform::{in_turns, threads};
use gguf::BoxFuture;

kernel! {
    MATMUL_EXPERTS_INPUT: "matmul_experts_input",
    wgsl: ["experts/matmul_experts_input.wgsl", "experts/pieces/rows_in_part.wgsl"],
    params: Params { k: u32, n: u32, stride: u32, first: u32, row_base: u32, row_count: u32, onto: u32, shares: u32 },
    bindings: Bind { dy: Read, w: Weight(Any), slots: Read, tiles: Read, dx: Write },
    cpu: cpu_ref::matmul_experts_input,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 10240 },
}

/// Columns of the weight per workgroup.
const COLUMNS: u32 = 128;

/// dx[t, j] = dy[t, j] w[expert j of t].
#[derive(Clone, Debug)]
pub struct MatmulExpertsInput {
    pub w: Weight,
    /// First of each expert's rows that is used. The number of rows used is the width of `dy` per
    /// slot.
    pub first: u32,
    pub routes: Routes,
    pub dy: Tensor,
    pub dx: Tensor,
}

parameters! { MatmulExpertsInput: first }

/// dx[t, j, k] = sum_n dy[t, j, n] w[e, first + n, k] for e = experts[t, j]: the derivative of
/// `product` by the row that each slot reads, from the derivative `dy` [T, k, N] by its result;
/// returns [T, k, K], f32. Where the slots of a row read one row,
/// [`sum_slots`](crate::ops::backward::sum_slots()) adds theirs.
pub fn matmul_experts_input(
    rec: &mut Recorder<impl From<MatmulExpertsInput>>,
    product: &MatmulExperts,
    dy: Tensor,
) -> Tensor {
    let &MatmulExperts { w, first, routes, y, .. } = product;
    assert_eq!(dy.shape, y.shape, "matmul_experts_input of unequal shapes");
    let dx = rec.make(Shape { dim: w.cols, ..y.shape });
    rec.push(MatmulExpertsInput { w, first, routes, dy, dx });
    dx
}

impl MatmulExpertsInput {
    /// Rows of the weight per expert.
    pub(crate) fn stride(&self) -> u32 {
        self.w.rows / self.routes.count
    }
}

impl Operation for MatmulExpertsInput {
    fn io(&self) -> Io {
        let Routes { experts, groups, .. } = self.routes;
        let mut reads = vec![self.dy, experts];
        reads.extend(groups.iter().flat_map(|g| [g.slots, g.tiles]));
        Io { reads, writes: vec![self.dx] }
    }

    /// Counts the weights of one expert per slot: at least those that were chosen.
    fn work(&self, counts: Counts) -> Work {
        let (n, k) = (u64::from(self.dy.shape.dim), u64::from(self.w.cols));
        let slots = u64::from(self.dy.shape.rows_at(counts)) * u64::from(self.routes.chosen());
        let read = slots.min(u64::from(self.routes.count)) * n;
        let weight_bytes = read * self.w.ty.row_bytes(self.w.cols as usize).unwrap_or(0) as u64;
        Work { flops: 2 * slots * n * k, bytes: weight_bytes + 4 * slots * (n + k), weight_bytes }
    }
}

impl Lowering for MatmulExpertsInput {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Some(groups) = self.routes.groups else { return matmul_vec_experts_input::lower(self, cx) };
        let (slots, tiles, shares) = (groups.slots, groups.tiles, groups.shares());
        let Weight { ty, rows, cols: k, .. } = self.w;
        // The parts of a weight add up, in order.
        let one = |(part, range): (usize, std::ops::Range<u32>)| {
            let w = Arg::Weight(self.w, part as u32);
            let bind = Bind { dy: self.dy.into(), w, slots: slots.into(), tiles: tiles.into(), dx: self.dx.into() };
            let (row_base, row_count, onto) = (range.start, range.len() as u32, u32::from(part > 0));
            let params = Params {
                k,
                n: self.dy.shape.dim,
                stride: self.stride(),
                first: self.first,
                row_base,
                row_count,
                onto,
                shares,
            };
            let grid = Grid::Tiles { lead: fixed(shares * tiles.shape.rows, 1), tile: 1, x: k.div_ceil(COLUMNS) };
            bind.dispatch(params, grid)
        };
        parts(cx.caps, ty, rows, k).into_iter().enumerate().map(one).collect()
    }
}

impl Reference for MatmulExpertsInput {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut dx = host.take(self.dx);
            let (w, experts, dy) = (host.matrix(self.w), host.u32(self.routes.experts), host.f32(self.dy));
            let (n, k, stride) = (self.dy.shape.dim as usize, self.w.cols as usize, self.stride() as usize);
            let rows = self.first as usize..self.first as usize + n;
            let slots = (experts.len() / threads()).max(1);
            let compute = |c: usize, dx: &mut [f32]| {
                let (first, count) = (c * slots, dx.len() / k);
                let (own, dy) = (&experts[first..first + count], &dy[first * n..][..count * n]);
                cpu_ref::matmul_experts_input(&w, stride, rows.clone(), own, dy, dx);
            };
            in_turns(&mut dx, slots * k, compute).await;
            host.put(self.dx, dx);
        })
    }
}
