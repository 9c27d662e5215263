//! Derivative of the weights of chosen experts by the router's logits.

use super::route::Route;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    ROUTE_BACKWARD: "route_backward",
    wgsl: ["experts/route_backward.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, k: u32, normalize: u32, has_scale: u32 },
    bindings: Bind { logits: Read, scale: Read, experts: Read, dweights: Read, dlogits: Write },
    cpu: cpu_ref::route_backward,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 2560 },
}

/// dlogits = the derivative of the weights of chosen experts.
#[derive(Clone, Debug)]
pub struct RouteBackward {
    pub logits: Tensor,
    pub normalize: bool,
    pub scale: Option<Weight>,
    pub experts: Tensor,
    pub dweights: Tensor,
    pub dlogits: Tensor,
}

parameters! { RouteBackward: normalize }

/// The derivative of `route` by its logits, through the weights, from the derivative `dweights`
/// [T, k] by them; returns [T, E], f32. The choice is constant.
pub fn route_backward(rec: &mut Recorder<impl From<RouteBackward>>, route: &Route, dweights: Tensor) -> Tensor {
    let &Route { logits, normalize, scale, experts, .. } = route;
    assert_eq!(
        (dweights.shape.rows, dweights.shape.width()),
        (experts.shape.rows, experts.shape.width()),
        "route_backward: a slot each"
    );
    let dlogits = rec.make(logits.shape);
    rec.push(RouteBackward { logits, normalize, scale, experts, dweights, dlogits });
    dlogits
}

impl Operation for RouteBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.logits, self.experts, self.dweights], writes: vec![self.dlogits] }
    }
}

impl Lowering for RouteBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params {
            dim: self.logits.shape.width(),
            rows: self.logits.shape.rows,
            k: self.experts.shape.width(),
            normalize: u32::from(self.normalize),
            has_scale: u32::from(self.scale.is_some()),
        };
        let [logits, experts, dweights, dlogits] =
            [self.logits, self.experts, self.dweights, self.dlogits].map(Into::into);
        let bind = Bind { logits, scale: self.scale.into(), experts, dweights, dlogits };
        vec![bind.dispatch(params, Grid::PerRow { lead: self.logits.shape, per_row: 1 })]
    }
}

impl Reference for RouteBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut dlogits = host.take(self.dlogits);
        let (count, chosen) = (self.logits.shape.width() as usize, self.experts.shape.width() as usize);
        let scale = self.scale.map(|s| host.vector(s));
        let spec = cpu_ref::RouteSpec { experts: count, chosen, normalize: self.normalize, scale };
        cpu_ref::route_backward(
            &spec,
            host.f32(self.logits),
            host.u32(self.experts),
            host.f32(self.dweights),
            &mut dlogits,
        );
        host.put(self.dlogits, dlogits);
    }
}
