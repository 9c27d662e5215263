//! A product in a plan: its operand may be rounded, and it may have a bias. The planner makes it
//! and pairs of it; parity cases record it.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work, in_one_turn};
use crate::graph::tensor::{Counts, Tensor, Weight};
use crate::norm::pack_f16::unpacked;

/// The form in which a product reads its activations.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    F32,
    /// `x` as packed by [`pack_q8`](crate::norm::pack_q8::pack_q8).
    Q8,
    /// `x` in slabs as packed by [`PackF16`](crate::norm::pack_f16::PackF16), with the
    /// scales of its rows, for tiles of 128 rows.
    F16 {
        scales: Tensor,
    },
    /// `x` in slabs as packed by [`PackF16`](crate::norm::pack_f16::PackF16), with the
    /// scales of its rows, for tiles of 16 to 96 rows.
    Slabs {
        scales: Tensor,
    },
}

/// y = x w^T + bias.
#[derive(Clone, Debug)]
pub struct Product {
    pub w: Weight,
    pub x: Tensor,
    pub operand: Operand,
    /// Whether the planner must not round the operand.
    pub exact: bool,
    pub bias: Option<Weight>,
    pub y: Tensor,
}

impl Product {
    /// The scales of the rows of an operand in f16.
    pub(crate) fn scales(&self) -> Option<Tensor> {
        if let Operand::F16 { scales } | Operand::Slabs { scales } = self.operand { Some(scales) } else { None }
    }
}

/// The cost of a product with `w` that makes `y`.
pub(crate) fn work(w: Weight, y: Tensor, counts: Counts) -> Work {
    let (t, n, k) = (u64::from(y.shape.rows_at(counts)), u64::from(w.rows), u64::from(w.cols));
    let weight_bytes = n * w.ty.row_bytes(w.cols as usize).unwrap_or(0) as u64;
    Work { flops: 2 * t * n * k, bytes: weight_bytes + 4 * t * (n + k), weight_bytes }
}

impl Operation for Product {
    fn io(&self) -> Io {
        Io { reads: std::iter::once(self.x).chain(self.scales()).collect(), writes: vec![self.y] }
    }

    fn work(&self, counts: Counts) -> Work {
        work(self.w, self.y, counts)
    }
}

impl Reference for Product {
    /// The product with the values that the rounded operand represents.
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        let k = self.w.cols as usize;
        let x = match self.operand {
            Operand::F32 => host.f32(self.x).to_vec(),
            Operand::Q8 => {
                let words = host.u32(self.x);
                let mut x = vec![0.0; words.len() / 3 * 8];
                cpu_ref::unpack_q8(words, k, &mut x);
                x
            }
            Operand::F16 { scales } | Operand::Slabs { scales } => {
                unpacked(host.f32(scales), host.u32(self.x), k, self.x.shape.rows)
            }
        };
        match self.operand {
            // The tiles of this operand round the weights as well.
            Operand::F16 { .. } => host.matmul_f16(self.w, &x, &mut y),
            Operand::F32 | Operand::Q8 | Operand::Slabs { .. } => in_one_turn(host.matmul(self.w, &x, &mut y)),
        }
        if let Some(bias) = self.bias {
            let sum = |y: &mut [f32]| y.iter_mut().zip(host.vector(bias)).for_each(|(y, b)| *y += b);
            y.chunks_exact_mut(self.w.rows as usize).for_each(sum);
        }
        host.put(self.y, y);
    }
}
