//! Activations in 8 bits for the products of quantized weights. The planner makes it; parity cases
//! record it.

use super::rms_norm::RmsNorm;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Element, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    PACK_Q8: "pack_q8",
    wgsl: ["norm/pack_q8.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/grid.wgsl"],
    params: Params { k: u32, rows: u32 },
    bindings: Bind { x: Read, packed: Write },
    cpu: cpu_ref::pack_q8,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 1536 },
}

const WG: u32 = 128;

/// Elements that share a scale.
pub const BLOCK: u32 = 32;

/// packed = the blocks of x as quants and scales.
#[derive(Clone, Debug)]
pub struct PackQ8 {
    pub x: Tensor,
    pub packed: Tensor,
    /// The norm that made `x`, if the factor of the norm is left to the readers.
    pub norm: Option<RmsNorm>,
}

/// The shape, in words, of the packed rows of `x`.
#[must_use]
pub fn packed_shape(x: Shape) -> Shape {
    Shape { heads: 1, dim: x.width() / 8 * 3, ..x }
}

/// Packs `x` [T, K] f32 as [`cpu_ref::pack_q8`] does; K is a multiple of 32. Returns [T, 3 K / 8]
/// words.
#[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only parity cases record it"))]
pub fn pack_q8(rec: &mut Recorder<impl From<PackQ8>>, x: Tensor) -> Tensor {
    assert!(x.shape.width().is_multiple_of(BLOCK), "pack_q8 of rows of {}", x.shape.width());
    let packed = rec.make_of(Element::Q8, packed_shape(x.shape));
    rec.push(PackQ8 { x, packed, norm: None });
    packed
}

impl Operation for PackQ8 {
    fn io(&self) -> Io {
        Io { reads: vec![self.x], writes: vec![self.packed] }
    }
}

impl Lowering for PackQ8 {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.x.shape;
        let params = Params { k: shape.width(), rows: shape.rows };
        let grid = Grid::Elements { lead: shape, workgroup: WG, per_thread: 4 };
        vec![Bind { x: self.x.into(), packed: self.packed.into() }.dispatch(params, grid)]
    }
}

impl Reference for PackQ8 {
    fn reference(&self, host: &mut Host<'_>) {
        let rows = self.x.shape.rows_at(host.counts()) as usize;
        let mut words = vec![0; rows * self.packed.shape.dim as usize];
        let k = self.x.shape.width() as usize;
        let near = match &self.norm {
            Some(RmsNorm { x: h, w, eps, .. }) => {
                cpu_ref::norm_pack_q8(host.f32(*h), w.map(|w| host.vector(w)), k, *eps, &mut words);
                // The factor of the norm is left to the readers: what is rounded is h w.
                let mut rows = host.f32(*h).to_vec();
                if let Some(w) = w {
                    let w = host.vector(*w);
                    rows.chunks_exact_mut(k).for_each(|row| row.iter_mut().zip(w).for_each(|(h, w)| *h *= w));
                }
                cpu_ref::near_ties(&rows, k)
            }
            None => {
                cpu_ref::pack_q8(host.f32(self.x), k, &mut words);
                cpu_ref::near_ties(host.f32(self.x), k)
            }
        };
        host.put_u32(self.packed, words);
        host.count_near(self.packed, near);
    }
}
