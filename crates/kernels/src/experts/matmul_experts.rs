//! Products of every slot with its expert's weights. Many rows go in tiles by expert; few rows go
//! to `matmul_vec_experts`.

use super::matmul_vec_experts;
use super::route::Routes;
use crate::graph::host::{Host, f32_rows};
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, Shape, Tensor, Weight};
use crate::kernel::dispatch::{Arg, Dispatch, Grid, Lower, Lowering, fixed};
use crate::kernel::split::parts;
use crate::platform::{in_turns, threads};
use gguf::BoxFuture;
use std::ops::Range;

kernel! {
    MATMUL_EXPERTS: "matmul_experts",
    wgsl: ["experts/matmul_experts.wgsl", quads],
    params: Params { k: u32, n: u32, stride: u32, first: u32, per: u32, row_base: u32, row_count: u32, shares: u32 },
    bindings: Bind { x: Read, w: Weight(Any), slots: Read, tiles: Read, y: Write },
    cpu: cpu_ref::matmul_experts,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 10240 },
    variants: {
        // Row lengths that are a multiple of 4, and other lengths.
        QUADS: "matmul_experts" { quads: choose ["shared/x4.wgsl"] },
        TAIL: "matmul_experts_tail" only Blockless { quads: choose ["shared/x4_tail.wgsl"] },
    },
}

/// Rows of weights per workgroup.
const WEIGHT_ROWS: u32 = 128;

/// y[t, j] = x w[expert j of t]^T.
#[derive(Clone, Debug)]
pub struct MatmulExperts {
    pub w: Weight,
    /// First of each expert's rows that is used. The number of rows used is the width of `y` per
    /// slot.
    pub first: u32,
    pub x: Tensor,
    pub routes: Routes,
    pub y: Tensor,
}

parameters! { MatmulExperts: first }
values! { MatmulExperts: x, w, routes, y }

/// y[t, j, n] = sum_k w[e, rows.start + n, k] x[t, k] for e = experts[t, j], the j-th choice of row
/// t.
///
/// `w` [E * R, K], in any weight format, holds the experts' matrices of R rows one after another.
/// Only the rows `rows` of each matrix are used. `x` is [T, K], or [T, k, K] with a row per choice;
/// returns [T, k, N], f32. Only the weights of chosen experts are read.
pub fn matmul_experts(
    rec: &mut Recorder<impl From<MatmulExperts>>,
    w: Weight,
    rows: Range<u32>,
    x: Tensor,
    routes: &Routes,
) -> Tensor {
    assert!(
        w.rows.is_multiple_of(routes.count) && rows.end <= w.rows / routes.count,
        "matmul_experts: rows {rows:?} of each expert"
    );
    assert!(
        x.shape.dim == w.cols && [1, routes.chosen()].contains(&x.shape.heads),
        "matmul_experts: {:?} with {w:?}",
        x.shape
    );
    assert_eq!(x.shape.rows, routes.experts.shape.rows, "matmul_experts: rows of another step");
    let y = rec.make(Shape { heads: routes.chosen(), dim: rows.len() as u32, ..x.shape });
    rec.push(MatmulExperts { w, first: rows.start, x, routes: *routes, y });
    y
}

impl MatmulExperts {
    /// Rows of the weight per expert.
    pub(crate) fn stride(&self) -> u32 {
        self.w.rows / self.routes.count
    }

    /// Slots that read the same row of `x`.
    pub(crate) fn per(&self) -> u32 {
        self.routes.chosen() / self.x.shape.heads
    }
}

impl Operation for MatmulExperts {
    fn io(&self) -> Io {
        let Routes { experts, groups, .. } = self.routes;
        let mut reads = vec![self.x, experts];
        reads.extend(groups.iter().flat_map(|g| [g.slots, g.tiles]));
        Io { reads, writes: vec![self.y] }
    }

    /// Counts the weights of one expert per slot: at least those that were chosen.
    fn work(&self, counts: Counts) -> Work {
        let (n, k) = (u64::from(self.y.shape.dim), u64::from(self.w.cols));
        let rows = u64::from(self.x.shape.rows_at(counts));
        let slots = rows * u64::from(self.routes.chosen());
        let read = slots.min(u64::from(self.routes.count)) * n;
        let weight_bytes = read * self.w.ty.row_bytes(self.w.cols as usize).unwrap_or(0) as u64;
        let moved = rows * u64::from(self.x.shape.width()) + slots * n;
        Work { flops: 2 * slots * n * k, bytes: weight_bytes + 4 * moved, weight_bytes }
    }
}

impl Lowering for MatmulExperts {
    fn lower(&self, cx: &Lower<'_>) -> Vec<Dispatch> {
        let Some(groups) = self.routes.groups else { return matmul_vec_experts::lower(self, cx) };
        let (slots, tiles, shares) = (groups.slots, groups.tiles, groups.shares());
        let Weight { ty, rows, cols: k, .. } = self.w;
        let n = self.y.shape.dim;
        let one = |(part, range): (usize, Range<u32>)| {
            let w = Arg::Weight(self.w, part as u32);
            let bind = Bind { x: self.x.into(), w, slots: slots.into(), tiles: tiles.into(), y: self.y.into() };
            let (row_base, row_count) = (range.start, range.len() as u32);
            let params =
                Params { k, n, stride: self.stride(), first: self.first, per: self.per(), row_base, row_count, shares };
            let grid = Grid::Tiles { lead: fixed(shares * tiles.shape.rows, 1), tile: 1, x: n.div_ceil(WEIGHT_ROWS) };
            bind.dispatch(if k % 4 == 0 { &QUADS } else { &TAIL }, params, grid)
        };
        parts(cx.caps, ty, rows, k).into_iter().enumerate().map(one).collect()
    }
}

impl Reference for MatmulExperts {
    fn reference(&self, host: &mut Host<'_>) {
        in_one_turn(self.in_turns(host));
    }

    fn in_turns<'a>(&'a self, host: &'a mut Host<'_>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let x = host.f32(self.x).to_vec();
            self.compute(host, &x, false).await;
        })
    }
}

impl MatmulExperts {
    /// The product with these rows, and with every element of the weight rounded to f16 if
    /// `rounded`.
    pub(crate) async fn compute(&self, host: &mut Host<'_>, x: &[f32], rounded: bool) {
        let mut y = host.take(self.y);
        let halves = rounded.then(|| host.rounded(self.w));
        let w = halves.as_ref().map_or_else(|| host.matrix(self.w), |halves| f32_rows(halves, self.w));
        let experts = host.u32(self.routes.experts);
        let (n, k, per) = (self.y.shape.dim as usize, self.w.cols as usize, self.per() as usize);
        let (stride, rows) = (self.stride() as usize, self.first as usize..(self.first + self.y.shape.dim) as usize);
        // Slots that read the same row of `x` stay in one chunk, except when there are few slots.
        let slots = (experts.len() / threads() / per * per).max(1);
        let compute = |c: usize, y: &mut [f32]| {
            let (first, count) = (c * slots, y.len() / n);
            let x = &x[first / per * k..][..count.div_ceil(per) * k];
            cpu_ref::matmul_experts(&w, stride, rows.clone(), &experts[first..first + count], x, y);
        };
        in_turns(&mut y, slots * n, compute).await;
        host.put(self.y, y);
    }
}
