//! Activations in f16, scaled by row, for the products of many rows. The planner makes it; parity
//! cases record it.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Element, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    PACK_F16: "pack_f16",
    wgsl: ["norm/pack_f16.wgsl", "shared/half_scale.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, scaled: u32 },
    bindings: Bind { x: Read, scales: Write, halves: Write },
    cpu: cpu_ref::pack_f16,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// scales = the power of two of each row's largest magnitude, 0 for a row of zeros, or ones;
/// halves = the rows divided by the scales.
#[derive(Clone, Debug)]
pub struct PackF16 {
    pub x: Tensor,
    pub scales: Tensor,
    pub halves: Tensor,
    /// Rows of a slab, which lie together 16 columns at a time, as
    /// [`crate::matmul::matmul_tile64`] reads them; 0 for whole rows.
    pub slab: u32,
    /// Whether rows are scaled. Rows that are known to fit f16 need no scale.
    pub scaled: bool,
}

/// Columns of a slab.
const COLUMNS: u32 = 16;

/// The shapes of the scales of `x` and of its halves, in words.
#[must_use]
pub fn packed_shapes(x: Shape) -> [Shape; 2] {
    [Shape { heads: 1, dim: 1, ..x }, Shape { heads: 1, dim: x.width() / 2, ..x }]
}

/// Distances in the halves of rows of `width` elements, in vectors of four: from row to row, and
/// from one group of 16 columns to the next. `slab` is the rows of a slab, 0 for whole rows.
pub(crate) fn pitches(width: u32, slab: u32) -> (u32, u32) {
    if slab > 0 { (COLUMNS / 4, slab * COLUMNS / 4) } else { (width / 4, COLUMNS / 4) }
}

/// Packs `x` [T, D] as [`cpu_ref::pack_f16`] does; D is a multiple of 4. Returns the scales [T, 1]
/// f32 and the halves [T, D / 2] words.
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only parity cases record it"))]
pub fn pack_f16(rec: &mut Recorder<impl From<PackF16>>, x: Tensor) -> (Tensor, Tensor) {
    packed(rec, x, true)
}

/// Packs `x` [T, D] to f16 with scales of one, for rows that f16 holds without scaling. D is a
/// multiple of 4. Returns the scales [T, 1] f32 and the halves [T, D / 2] words.
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only parity cases record it"))]
pub fn pack_f16_as_is(rec: &mut Recorder<impl From<PackF16>>, x: Tensor) -> (Tensor, Tensor) {
    packed(rec, x, false)
}

pub(crate) fn packed(rec: &mut Recorder<impl From<PackF16>>, x: Tensor, scaled: bool) -> (Tensor, Tensor) {
    assert!(x.shape.width().is_multiple_of(4), "pack_f16 of rows of {}", x.shape.width());
    let [of_scales, of_halves] = packed_shapes(x.shape);
    let (scales, halves) = (rec.make(of_scales), rec.make_of(Element::F16, of_halves));
    rec.push(PackF16 { x, scales, halves, slab: 0, scaled });
    (scales, halves)
}

impl Operation for PackF16 {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.scales, self.halves] }
    }
}

impl Lowering for PackF16 {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let (row_pitch, slab_pitch) = pitches(shape.width(), self.slab);
        let params =
            Params { dim: shape.width(), rows: shape.rows, row_pitch, slab_pitch, scaled: u32::from(self.scaled) };
        let bind = Bind { x: self.x.into(), scales: self.scales.into(), halves: self.halves.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }
}

impl Reference for PackF16 {
    fn reference(&self, host: &mut Host<'_>) {
        let k = self.x.shape.width() as usize;
        let mut scales = host.take(self.scales);
        let mut words = vec![0; host.f32(self.x).len() / 2];
        if self.scaled {
            cpu_ref::pack_f16(host.f32(self.x), k, &mut scales, &mut words);
        } else {
            scales.fill(1.0);
            cpu_ref::pack_f16_as_is(host.f32(self.x), &mut words);
        }
        if self.slab > 0 {
            let mut slabs = vec![0; self.slab as usize * k / 2];
            put_rows(&words, &mut slabs, k, self.slab);
            words = slabs;
        }
        host.put(self.scales, scales);
        host.put_u32(self.halves, words);
    }
}

/// The index of the word `pair` of row `t`, for rows of `k` elements in slabs of `slab` rows, or in
/// whole rows.
fn place(t: usize, pair: usize, k: usize, slab: u32) -> usize {
    let (columns, slab) = (COLUMNS as usize / 2, slab as usize);
    if slab > 0 { pair / columns * slab * columns + t * columns + pair % columns } else { t * k / 2 + pair }
}

/// Copies `rows` whole rows out of `words`, which are in slabs of `slab` rows or in whole rows.
pub(crate) fn in_rows(words: &[u32], rows: usize, k: usize, slab: u32) -> Vec<u32> {
    (0..rows * k / 2).map(|n| words[place(n / (k / 2), n % (k / 2), k, slab)]).collect()
}

/// Copies whole rows into `words`, whose rows are whole or in slabs of `slab` rows.
pub(crate) fn put_rows(rows: &[u32], words: &mut [u32], k: usize, slab: u32) {
    rows.iter().enumerate().for_each(|(n, word)| words[place(n / (k / 2), n % (k / 2), k, slab)] = *word);
}

/// The values of packed rows, [T, k], in whole rows or in slabs of `slab` rows.
pub(crate) fn unpacked(scales: &[f32], words: &[u32], k: usize, slab: u32) -> Vec<f32> {
    let mut x = vec![0.0; scales.len() * k];
    cpu_ref::unpack_f16(scales, &in_rows(words, scales.len(), k, slab), k, &mut x);
    x
}
