//! A sum of tensors with separate weights for every row.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    ADD_WEIGHTED: "add_weighted",
    wgsl: ["elementwise/add_weighted.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, dim: u32, columns: u32, first: u32, count: u32, shift: f32 },
    bindings: Bind { base: Read, c: Read, x0: Read, x1: Read, x2: Read, x3: Read, y: Write },
    cpu: cpu_ref::add_weighted,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// Largest number of tensors in one sum.
pub const MOST: usize = 4;

/// The weights of a sum: columns of [T, C] from `first` on, each plus `shift`.
#[derive(Copy, Clone, Debug)]
pub struct RowWeights {
    pub c: Tensor,
    pub first: u32,
    pub shift: f32,
}

/// y = base + sum_j (c[.., first + j] + shift) * x_j.
#[derive(Clone, Debug)]
pub struct AddWeighted {
    pub base: Tensor,
    pub x: Vec<Tensor>,
    pub weights: RowWeights,
    pub y: Tensor,
}

parameters! { AddWeighted: weights }
values! { AddWeighted: base, x, weights.c, y }

/// y\[t\] = base\[t\] + sum_j (c[t, first + j] + shift) * x_j\[t\]; `base` and one to four tensors
/// `x` [T, D], f32.
pub fn add_weighted(
    rec: &mut Recorder<impl From<AddWeighted>>,
    base: Tensor,
    x: &[Tensor],
    weights: RowWeights,
) -> Tensor {
    assert!((1..=MOST).contains(&x.len()), "add_weighted of {} tensors", x.len());
    assert!(
        x.iter().all(|x| x.shape == base.shape) && weights.c.shape.rows == base.shape.rows,
        "add_weighted of unequal shapes"
    );
    assert!(weights.first + x.len() as u32 <= weights.c.shape.width(), "add_weighted: a weight for every tensor");
    let y = rec.make(base.shape);
    rec.push(AddWeighted { base, x: x.to_vec(), weights, y });
    y
}

impl Operation for AddWeighted {
    fn io(&self) -> Io {
        Io { reads: [&[self.base, self.weights.c], &self.x[..]].concat(), writes: vec![self.y] }
    }
}

impl Lowering for AddWeighted {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Self { base, x, weights: RowWeights { c, first, shift }, y } = self;
        let params = Params {
            n: y.shape.elements() as u32,
            dim: y.shape.width(),
            columns: c.shape.width(),
            first: *first,
            count: x.len() as u32,
            shift: *shift,
        };
        let at = |j: usize| x.get(j).copied().unwrap_or(x[0]).into();
        let bind =
            Bind { base: (*base).into(), c: (*c).into(), x0: at(0), x1: at(1), x2: at(2), x3: at(3), y: (*y).into() };
        vec![bind.dispatch(params, Grid::Elements { lead: y.shape, workgroup: 256, per_thread: 1 })]
    }
}

impl Reference for AddWeighted {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        let Self { base, x, weights: RowWeights { c, first, shift }, .. } = self;
        let x: Vec<&[f32]> = x.iter().map(|x| host.f32(*x)).collect();
        let (c, columns) = (host.f32(*c), c.shape.width() as usize);
        let weights = cpu_ref::RowWeights { c, columns, first: *first as usize, shift: f64::from(*shift) };
        cpu_ref::add_weighted(host.f32(*base), &x, weights, base.shape.width() as usize, &mut y);
        host.put(self.y, y);
    }
}
