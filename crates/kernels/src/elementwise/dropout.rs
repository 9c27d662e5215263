//! Sets a random share of the elements to zero.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::Tensor;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    DROPOUT: "dropout",
    wgsl: ["elementwise/dropout.wgsl", "shared/grid.wgsl", "shared/threefry.wgsl"],
    params: Params { n: u32, tensor: u32, threshold: u32, scale: f32 },
    bindings: Bind { x: Read, key: Read, y: Write },
    cpu: cpu_ref::dropout,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = x / (1 - rate), or 0 with the probability `rate`.
#[derive(Clone, Debug)]
pub struct Dropout {
    pub x: Tensor,
    /// u32 [1, 2]: the seed and the number of the step.
    pub key: Tensor,
    /// A number that no other dropout of the recording has.
    pub tensor: u32,
    pub rate: f32,
    pub y: Tensor,
}

parameters! { Dropout: tensor, rate }
values! { Dropout: x, key, y }

/// y = x / (1 - rate), or 0 with the probability `rate`, element by element; `x` [T, D], f32. The
/// words of `key` [1, 2], a seed and the number of the step, and `tensor` decide together with the
/// index of an element whether it is dropped. The derivative is the operation itself (Srivastava et
/// al. 2014).
///
/// # Panics
/// When the rate is not in 0..1.
pub fn dropout(rec: &mut Recorder<impl From<Dropout>>, x: Tensor, key: Tensor, tensor: u32, rate: f32) -> Tensor {
    assert!(
        (0.0..1.0).contains(&rate) && key.shape.elements() == 2,
        "dropout: a rate of {rate}, a key of {:?}",
        key.shape
    );
    let y = rec.make(x.shape);
    rec.push(Dropout { x, key, tensor, rate, y });
    y
}

impl Operation for Dropout {
    fn io(&self) -> Io {
        Io { reads: vec![self.x, self.key], writes: vec![self.y] }
    }
}

impl Lowering for Dropout {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let rate = f64::from(self.rate);
        let (threshold, scale) = ((rate * 2f64.powi(32)).ceil() as u32, (1.0 / (1.0 - rate)) as f32);
        let params = Params { n: self.y.shape.elements() as u32, tensor: self.tensor, threshold, scale };
        let grid = Grid::Elements { lead: self.y.shape, workgroup: 256, per_thread: 1 };
        vec![Bind { x: self.x.into(), key: self.key.into(), y: self.y.into() }.dispatch(params, grid)]
    }
}

impl Reference for Dropout {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        let &[seed, step] = host.u32(self.key) else { panic!("dropout: a key of two words") };
        cpu_ref::dropout(host.f32(self.x), [seed, step], self.tensor, f64::from(self.rate), &mut y);
        host.put(self.y, y);
    }
}
