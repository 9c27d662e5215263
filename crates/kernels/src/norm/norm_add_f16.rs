//! A residual sum with the norm of one summand and the packing of the sum to f16, in one kernel.
//! The planner makes it; it is never recorded.

use super::norm_add::NormAdd;
use super::pack_f16::pitches;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Arg, Dispatch, Grid};

kernel! {
    NORM_ADD_F16: "norm_add_f16",
    wgsl: ["norm/norm_add_f16.wgsl", "shared/half_scale.wgsl", "shared/square_sums.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params {
        dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, has_weight: u32, has_factor: u32, has_norm: u32, has_u: u32, eps: f32,
        next_eps: f32, scale: f32
    },
    bindings: Bind { a: Read, b: Read, w: Read, s: Read, h: Write, u: Read, scales: Write, halves: Write },
    cpu: cpu_ref::rms_norm,
    nmse: 1e-10,
    needs: { threads: 512, workgroup_bytes: 10240 },
}

/// The dispatch of a sum of whole rows that is packed to `scales` and `halves`, in slabs of `slab`
/// rows.
pub(super) fn dispatch(op: &NormAdd, [scales, halves]: [Tensor; 2], slab: u32, grid: Grid) -> Dispatch {
    let shape = op.h.shape;
    let (row_pitch, slab_pitch) = pitches(shape.width(), slab);
    let flags = op.flags();
    let params = Params {
        dim: shape.width(),
        rows: shape.rows,
        row_pitch,
        slab_pitch,
        has_weight: flags.has_weight,
        has_factor: flags.has_factor,
        has_norm: u32::from(op.packed.is_some_and(|packed| packed.norm.is_some())),
        has_u: flags.has_u,
        eps: op.eps,
        next_eps: flags.next_eps,
        scale: op.scale,
    };
    let [a, b, h, scales, halves] = [op.a, op.b, op.h, scales, halves].map(Arg::from);
    Bind { a, b, w: op.w.into(), s: op.factor.into(), h, u: flags.u.into(), scales, halves }.dispatch(params, grid)
}
