//! Activations in 8 bits for the products of quantized weights. Put there by the planner; recorded by parity cases.

use super::{Io, Operation};
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Dispatch, Grid, Lower};
use crate::record::Recorder;
use crate::tensor::{Lead, Shape, Tensor};

kernel! {
    PACK_Q8: "pack_q8",
    entry: "pack_q8",
    wgsl: ["pack_q8.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/grid.wgsl"],
    params: Params { k: u32, rows: u32 },
    bindings: Bind { x: Read, packed: Write },
    cpu: cpu_ref::pack_q8,
    nmse: 1e-10,
}

const WG: u32 = 128;
/// Elements that share a scale.
pub const BLOCK: u32 = 32;

/// packed = the blocks of x as quants and scales.
#[derive(Clone, Debug)]
pub struct PackQ8 {
    pub x: Tensor,
    pub packed: Tensor,
}

/// The shape, in words, that rows of `x` take when packed.
#[must_use]
pub fn packed_shape(x: Shape) -> Shape {
    Shape { heads: 1, dim: x.width() / 8 * 3, ..x }
}

/// `x` [T, K] f32, K a multiple of 32, as [`cpu_ref::pack_q8`] packs it; [T, 3 K / 8] words.
pub fn pack_q8(rec: &mut Recorder, x: Tensor) -> Tensor {
    assert!(x.shape.width().is_multiple_of(BLOCK), "pack_q8 of rows of {}", x.shape.width());
    let packed = rec.make(packed_shape(x.shape));
    rec.push(PackQ8 { x, packed });
    packed
}

impl Operation for PackQ8 {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.packed] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { k: shape.width(), rows: shape.rows };
        let grid = Grid::Elements { lead: shape, workgroup: WG, per_thread: 4 };
        vec![Bind { x: self.x.into(), packed: self.packed.into() }.dispatch(params, grid)]
    }

    fn cpu(&self, host: &mut Host<'_>) {
        let rows = self.x.shape.rows_at(host.counts()) as usize;
        let mut words = vec![0; rows * self.packed.shape.dim as usize];
        cpu_ref::pack_q8(host.f32(self.x), self.x.shape.width() as usize, &mut words);
        host.put_u32(self.packed, words);
    }
}

/// `x` [1, cols] in 8 bits for a product; `normed`, by the kernel that leaves the norm's factor to the product.
pub(super) fn activations(case: &mut Case, g: &mut Gen, cols: u32, normed: bool) -> Tensor {
    let x = case.tensor(g, cols);
    let x = if normed { super::rms_norm(&mut case.rec, x, None, 1e-6) } else { x };
    pack_q8(&mut case.rec, x)
}

/// A block whose other values lie in the middle between two quants, or next to it.
fn between(g: &mut Gen) -> Vec<f32> {
    let largest = g.pick(&[1.0, 1e-3, 1e6]) * (g.unit().abs() + 0.5);
    let scale = f32::from_bits(((largest * (1.0 / 127.0)).to_bits() + 255) & !255);
    let value = |g: &mut Gen| {
        let middle = ((126.0 * g.unit()).floor() + 0.5) * scale;
        g.pick(&[middle, middle.next_up(), middle.next_down()])
    };
    (0..BLOCK).map(|i| if i == 0 { largest } else { value(g) }).collect()
}

/// Blocks that count as zeros start below it.
const LEAST: f32 = 1e-30;

/// Rows of one block and of many, of every character, with blocks of zeros, of the least that are none and of values between two
/// quants; the words must be equal.
pub fn case(g: &mut Gen) -> Case {
    let (rows, blocks) = (g.small(), g.pick(&[1, 2, 3, 63, 64, 65]));
    let mut case = Case::new(rows);
    let x = if g.coin() {
        case.tensor(g, BLOCK * blocks)
    } else {
        let block = |g: &mut Gen| match g.pick(&[0, 0, 1, 2]) {
            0 => between(g),
            1 => vec![LEAST; BLOCK as usize],
            _ => vec![LEAST.next_down(); BLOCK as usize],
        };
        let values = (0..rows * blocks).flat_map(|_| block(g)).collect();
        case.given(Shape::new(Lead::Step, rows, BLOCK * blocks), values)
    };
    let packed = pack_q8(&mut case.rec, x);
    case.expect_as(packed, crate::compare::Compare::Exact);
    case
}
