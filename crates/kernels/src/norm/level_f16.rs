//! Rows in f16 whose parts have scales of their own, converted to one scale per row. The planner
//! makes it; parity cases record it.

use super::pack_f16::{in_rows, pitches, put_rows};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    LEVEL_F16: "level_f16",
    wgsl: ["norm/level_f16.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, each: u32, row_pitch: u32, slab_pitch: u32 },
    bindings: Bind { tops: Read, scales: Write, halves: Write },
    cpu: cpu_ref::level_f16,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// The scale of a row is at most this many times that of `pack_f16`: the parts have scales in steps
/// of 2^8 (coarse_scale.wgsl), and their largest element may be next to a power of two.
pub(crate) const COARSER: f32 = 256.0;

/// The parts of a row in f16 have a scale each (`tops`). The largest of them becomes the scale of
/// the row. The halves of a part are multiplied by the scale of the part / the scale of the row.
/// It works in place, because the halves have no other readers.
#[derive(Clone, Debug)]
pub struct LevelF16 {
    pub tops: Tensor,
    pub scales: Tensor,
    pub halves: Tensor,
    /// Rows of a slab, as in [`PackF16`](crate::norm::pack_f16::PackF16); 0 for whole rows.
    pub slab: u32,
}

/// Converts `halves` [T, D / 2] (words) in place to one scale per row. Every D / B elements were
/// divided by one of `tops` [T, B]; D / B is a multiple of 4. Returns the scales [T, 1]. The oracle
/// is [`cpu_ref::level_f16`].
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only parity cases record it"))]
pub fn level_f16(rec: &mut Recorder<impl From<LevelF16>>, tops: Tensor, halves: Tensor) -> Tensor {
    let (dim, parts) = (2 * halves.shape.width(), tops.shape.width());
    assert!(dim.is_multiple_of(4 * parts), "level_f16 of rows of {dim} in {parts} parts");
    let scales = rec.make(Shape { heads: 1, dim: 1, ..halves.shape });
    rec.push(LevelF16 { tops, scales, halves, slab: 0 });
    scales
}

impl Operation for LevelF16 {
    fn io(&self) -> Io {
        Io { reads: vec![self.tops, self.halves], writes: vec![self.scales, self.halves] }
    }
}

impl Lowering for LevelF16 {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.scales.shape;
        let dim = 2 * self.halves.shape.width();
        let (row_pitch, slab_pitch) = pitches(dim, self.slab);
        let params = Params { dim, rows: shape.rows, each: dim / self.tops.shape.width(), row_pitch, slab_pitch };
        let bind = Bind { tops: self.tops.into(), scales: self.scales.into(), halves: self.halves.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }
}

impl Reference for LevelF16 {
    fn reference(&self, host: &mut Host<'_>) {
        let (mut scales, mut words) = (host.take(self.scales), host.u32(self.halves).to_vec());
        let (k, parts) = (2 * self.halves.shape.width() as usize, self.tops.shape.width() as usize);
        let mut rows = in_rows(&words, scales.len(), k, self.slab);
        cpu_ref::level_f16(host.f32(self.tops), k, k / parts, &mut scales, &mut rows);
        put_rows(&rows, &mut words, k, self.slab);
        host.put(self.scales, scales);
        host.put_u32(self.halves, words);
    }
}
