//! Activations in f16, scaled by row, for the products of many rows. Put there by the planner; recorded by parity cases.

use super::{Io, Operation};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Lead, Shape, Tensor};

kernel! {
    PACK_F16: "pack_f16",
    entry: "pack_f16",
    wgsl: ["pack_f16.wgsl", "shared/half_scale.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, scaled: u32 },
    bindings: Bind { x: Read, scales: Write, halves: Write },
    cpu: cpu_ref::pack_f16,
    nmse: 1e-6,
}

/// scales = the power of two of each row's largest magnitude, or ones; halves = the rows divided by them.
#[derive(Clone, Debug)]
pub struct PackF16 {
    pub x: Tensor,
    pub scales: Tensor,
    pub halves: Tensor,
    /// Rows that lie together, 16 columns at a time, as [`super::matmul_few`] reads them; or 0, whole rows.
    pub slab: u32,
    /// Whether rows are scaled: those of which it is known that f16 holds them need not be.
    pub scaled: bool,
}

/// Columns of a slab.
const COLUMNS: u32 = 16;

/// The shapes of the scales and, in words, of the halves of `x`.
#[must_use]
pub fn packed_shapes(x: Shape) -> [Shape; 2] {
    [Shape { heads: 1, dim: 1, ..x }, Shape { heads: 1, dim: x.width() / 2, ..x }]
}

/// Vectors of four from row to row and from one 16 columns to the next, of the halves of `x` in slabs of so many rows, or in whole rows.
pub(super) fn pitches(x: Shape, slab: u32) -> (u32, u32) {
    if slab > 0 { (COLUMNS / 4, slab * COLUMNS / 4) } else { (x.width() / 4, COLUMNS / 4) }
}

/// `x` [T, D], D a multiple of 4, as [`cpu_ref::pack_f16`] packs it: the scales [T, 1] f32 and the halves [T, D / 2] words.
pub fn pack_f16(rec: &mut Recorder, x: Tensor) -> (Tensor, Tensor) {
    packed(rec, x, true)
}

/// The same without scales, which are ones: of rows that f16 holds as they are.
pub fn pack_f16_as_is(rec: &mut Recorder, x: Tensor) -> (Tensor, Tensor) {
    packed(rec, x, false)
}

fn packed(rec: &mut Recorder, x: Tensor, scaled: bool) -> (Tensor, Tensor) {
    assert!(x.shape.width().is_multiple_of(4), "pack_f16 of rows of {}", x.shape.width());
    let [scales, halves] = packed_shapes(x.shape).map(|shape| rec.make(shape));
    rec.push(PackF16 { x, scales, halves, slab: 0, scaled });
    (scales, halves)
}

impl Operation for PackF16 {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.scales, self.halves] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let (row_pitch, slab_pitch) = pitches(shape, self.slab);
        let params = Params { dim: shape.width(), rows: shape.rows, row_pitch, slab_pitch, scaled: u32::from(self.scaled) };
        let bind = Bind { x: self.x.into(), scales: self.scales.into(), halves: self.halves.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 })]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let mut scales = host.take(self.scales);
        let mut words = vec![0; host.f32(self.x).len() / 2];
        if self.scaled {
            cpu_ref::pack_f16(host.f32(self.x), self.x.shape.width() as usize, &mut scales, &mut words);
        } else {
            scales.fill(1.0);
            cpu_ref::pack_f16_as_is(host.f32(self.x), &mut words);
        }
        host.put(self.scales, scales);
        host.put_u32(self.halves, words);
    }
}

/// Magnitudes below it count as zeros.
const LEAST: f32 = 7.9e-31;

/// Rows of ordinary, tiny and huge values, of zeros, and of the least that have a scale and the most that have none, by a value in any column.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), 4 * g.dim());
    let mut case = Case::new(rows);
    let scaled = g.pick(&[true, true, false]);
    let x = if !scaled {
        case.uniform(g, dim, 1e3)
    } else if g.coin() {
        case.squared(g, dim)
    } else {
        let (size, largest) = (g.pick(&[LEAST, LEAST.next_down()]), (g.bits() % u64::from(dim)) as u32);
        let values = (0..rows * dim).map(|n| if n % dim == largest { size } else { size * g.unit() }).collect();
        case.given(Shape::new(Lead::Step, rows, dim), values)
    };
    let (scales, halves) = packed(&mut case.rec, x, scaled);
    case.expect_as(scales, Compare::Exact);
    case.expect_as(halves, Compare::Halves);
    case
}
