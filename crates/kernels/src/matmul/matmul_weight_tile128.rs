//! Derivative of a product with a weight matrix by the weight, over many rows, through cooperative
//! matrices (tensor cores). The planner makes it.

use super::matmul_input_tile128::QUAD;
use super::matmul_tile128::TILE;
use super::matmul_weight::{MatmulWeight, add_products, work};
use super::problem::TILE128_ROWS;
use crate::caps::Caps;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::tensor::{Counts, State, Tensor, counted};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering, fixed};
use crate::norm::pack_f16::{pitches, unpacked};
use half::f16;

kernel! {
    MATMUL_WEIGHT_TILE128: "matmul_weight_tile128",
    wgsl: ["matmul/matmul_weight_tile128.wgsl", "matmul/pieces/tile128_sums.wgsl", "shared/step_rows.wgsl"],
    params: Params { k: u32, n: u32, rows: u32, counted: u32, first: u32, row_pitch: u32, slab_pitch: u32 },
    bindings: Bind { dy: Read, dy_scales: Read, x: Read, x_scales: Read, step_rows: Read, g: State },
    cpu: cpu_ref::matmul_weight,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 21504 },
}

/// g += dy^T x, of rows in f16.
#[derive(Clone, Debug)]
pub struct MatmulWeightTile128 {
    /// As [`pack_f16`](crate::norm::pack_f16) packs rows.
    pub dy: Tensor,
    pub dy_scales: Tensor,
    pub x: Tensor,
    /// Rows of a slab of x, which a product of the same rows may have packed; 0 for whole rows.
    pub x_slab: u32,
    pub x_scales: Tensor,
    pub step_rows: Tensor,
    pub g: State,
}

/// Whether the kernel takes the derivative on this device.
#[must_use]
pub fn serves(op: &MatmulWeight, caps: &Caps) -> bool {
    let in_quads = [op.dy, op.x].iter().all(|t| t.shape.width().is_multiple_of(QUAD));
    !op.exact && caps.cooperative && op.x.shape.rows >= TILE128_ROWS && in_quads
}

impl MatmulWeightTile128 {
    /// Rows and columns of the result. The shapes of halves count words of two elements.
    fn extents(&self) -> [u32; 2] {
        [self.dy, self.x].map(|halves| 2 * halves.shape.width())
    }
}

impl Operation for MatmulWeightTile128 {
    fn io(&self) -> Io {
        Io { reads: vec![self.dy, self.dy_scales, self.x, self.x_scales, self.step_rows], writes: vec![] }
    }

    fn work(&self, counts: Counts) -> Work {
        work(self.dy.shape.rows_at(counts), self.extents())
    }
}

impl Lowering for MatmulWeightTile128 {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let [n, k] = self.extents();
        let (counted, first) = counted(self.dy.shape);
        let bind = Bind {
            dy: self.dy.into(),
            dy_scales: self.dy_scales.into(),
            x: self.x.into(),
            x_scales: self.x_scales.into(),
            step_rows: self.step_rows.into(),
            g: self.g.into(),
        };
        let (row_pitch, slab_pitch) = pitches(k, self.x_slab);
        let params = Params { k, n, rows: self.dy.shape.rows, counted, first, row_pitch, slab_pitch };
        vec![bind.dispatch(params, Grid::Tiles { lead: fixed(n, k), tile: TILE, x: k.div_ceil(TILE) })]
    }
}

impl Reference for MatmulWeightTile128 {
    /// The sum of the products of the halves. The halves of dy are rounded again where the scales
    /// of their row are moved into them.
    fn reference(&self, host: &mut Host<'_>) {
        let [n, k] = self.extents().map(|extent| extent as usize);
        let mut g = host.state_f32(self.g);
        let scales: Vec<f32> =
            host.f32(self.dy_scales).iter().zip(host.f32(self.x_scales)).map(|(a, b)| a * b).collect();
        let most = Some(scales.iter().copied().fold(0.0, f32::max)).filter(|most| *most > 0.0).unwrap_or(1.0);
        let ones = vec![1.0; scales.len()];
        let mut dy = unpacked(&ones, host.u32(self.dy), n, 0);
        for (row, scale) in dy.chunks_exact_mut(n).zip(&scales) {
            row.iter_mut().for_each(|v| *v = f16::from_f32(*v * (scale / most)).to_f32() * most);
        }
        in_one_turn(add_products(&dy, &unpacked(&ones, host.u32(self.x), k, self.x_slab), [n, k], &mut g));
        host.put_state(self.g, &g);
    }
}
