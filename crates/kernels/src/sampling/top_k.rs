//! The largest elements of each row with their indices.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Element, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    TOP_K: "top_k",
    wgsl: ["sampling/top_k.wgsl", "shared/grid.wgsl", "shared/order.wgsl", "sampling/pieces/largest.wgsl"],
    params: Params { dim: u32, rows: u32, k: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::top_k,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 10252 },
}

/// Largest `k`: `MOST` in `sampling/pieces/largest.wgsl`.
pub const MAX_K: u32 = 256;

/// y = the k largest values, then their indices.
#[derive(Clone, Debug)]
pub struct TopK {
    pub x: Tensor,
    pub k: u32,
    pub y: Tensor,
}

parameters! { TopK }
values! { TopK: x, y }

/// The `k` (at most [`MAX_K`]) largest elements of every row of `x` [R, V] f32, value descending,
/// then index ascending.
///
/// Returns [R, 2 k] words: the bits of k f32 values, then k u32 indices. NaN is skipped. Where
/// fewer than `k` elements are left, the rest is filled with minus infinity and `u32::MAX`.
pub fn top_k(rec: &mut Recorder<impl From<TopK>>, x: Tensor, k: u32) -> Tensor {
    assert!((1..=MAX_K).contains(&k), "top_k of {k}");
    let x = x.flat();
    let y = rec.make_of(Element::U32, Shape { dim: 2 * k, ..x.shape });
    rec.push(TopK { x, k, y });
    y
}

impl Operation for TopK {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.y] }
    }
}

impl Lowering for TopK {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { dim: self.x.shape.dim, rows: self.x.shape.rows, k: self.k };
        let grid = Grid::PerRow { lead: self.x.shape, per_row: 1 };
        vec![Bind { x: self.x.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for TopK {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = vec![];
        for row in host.f32(self.x).chunks_exact(self.x.shape.dim as usize) {
            let mut best = cpu_ref::top_k(row, self.k as usize);
            best.resize(self.k as usize, (u32::MAX, f32::NEG_INFINITY));
            y.extend(best.iter().map(|(_, value)| value.to_bits()));
            y.extend(best.iter().map(|(index, _)| *index));
        }
        host.put_u32(self.y, y);
    }
}
