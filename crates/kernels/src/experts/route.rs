//! Chooses the experts of each row of a step, and their weights.

use super::group_experts::{GroupExperts, Groups, group_experts};
use super::matmul_vec_experts::MAX_ROWS;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Element, Shape, Tensor, Weight};
use crate::graph::values::Values;
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    ROUTE: "route",
    wgsl: ["experts/route.wgsl", "experts/pieces/choose.wgsl", "shared/grid.wgsl", "shared/order.wgsl", "shared/reduce.wgsl"],
    params: Params { count: u32, rows: u32, chosen: u32, normalize: u32, has_scale: u32 },
    bindings: Bind { logits: Read, scale: Read, experts: Write, weights: Write },
    cpu: cpu_ref::route,
    nmse: 1e-10,
    needs: { threads: 128, workgroup_bytes: 11776 },
}

/// Largest number of experts in a layer: `MOST` in `route.wgsl` and in `group_experts.wgsl`.
pub const MAX_EXPERTS: u32 = 1024;

/// The experts of every row of the step. A slot is a pair of a row and one of its choices.
#[derive(Copy, Clone, Debug)]
pub struct Routes {
    /// u32 [T, k].
    pub experts: Tensor,
    /// f32 [T, k].
    pub weights: Tensor,
    /// Number of experts in the layer.
    pub count: u32,
    /// Slots by expert, in recordings with so many rows that an expert serves several of them.
    pub groups: Option<Groups>,
}

impl Values for Routes {
    fn each(&mut self, f: &mut dyn FnMut(&mut Tensor)) {
        [&mut self.experts, &mut self.weights].into_iter().for_each(&mut *f);
        self.groups.each(f);
    }
}

impl Routes {
    /// Routes from given choices. The slots are grouped if the recording has many rows.
    pub(crate) fn of(
        rec: &mut Recorder<impl From<GroupExperts>>,
        experts: Tensor,
        weights: Tensor,
        count: u32,
    ) -> Self {
        let groups = (rec.capacity().step > MAX_ROWS).then(|| group_experts(rec, experts, count));
        Self { experts, weights, count, groups }
    }

    /// Choices per row (k).
    #[must_use]
    pub fn chosen(&self) -> u32 {
        self.experts.shape.dim
    }
}

/// experts, weights = the k largest of softmax(logits).
#[derive(Clone, Debug)]
pub struct Route {
    pub logits: Tensor,
    pub normalize: bool,
    pub scale: Option<Weight>,
    pub experts: Tensor,
    pub weights: Tensor,
}

parameters! { Route: normalize }
values! { Route: logits, scale, experts, weights }

/// The `k` experts with the largest `logits` [T, E] f32, largest first; of equal logits the lower
/// expert number comes first. Each has its share of the softmax over all experts, or over the
/// chosen ones (`normalize`), times `scale` \[E\] if it is given.
///
/// The choice is discrete. `logits` therefore come from [`crate::ops::matmul_exact`], which stays
/// in f32 even if other products are rounded.
pub fn route(
    rec: &mut Recorder<impl From<Route> + From<GroupExperts>>,
    logits: Tensor,
    k: u32,
    normalize: bool,
    scale: Option<Weight>,
) -> Routes {
    let count = logits.shape.width();
    assert!((1..=count).contains(&k) && count <= MAX_EXPERTS, "route to {k} of {count} experts");
    assert!(scale.is_none_or(|s| s.cols == count), "route: a scale per expert");
    let shape = Shape { heads: 1, dim: k, ..logits.shape };
    let (experts, weights) = (rec.make_of(Element::U32, shape), rec.make(shape));
    rec.push(Route { logits, normalize, scale, experts, weights });
    Routes::of(rec, experts, weights, count)
}

impl Operation for Route {
    fn io(&self) -> Io {
        Io { reads: vec![self.logits], writes: vec![self.experts, self.weights] }
    }
}

impl Lowering for Route {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params {
            count: self.logits.shape.width(),
            rows: self.logits.shape.rows,
            chosen: self.experts.shape.dim,
            normalize: u32::from(self.normalize),
            has_scale: u32::from(self.scale.is_some()),
        };
        let (experts, weights) = (self.experts.into(), self.weights.into());
        let bind = Bind { logits: self.logits.into(), scale: self.scale.into(), experts, weights };
        vec![bind.dispatch(params, Grid::PerRow { lead: self.logits.shape, per_row: 1 })]
    }
}

impl Reference for Route {
    fn reference(&self, host: &mut Host<'_>) {
        let mut weights = host.take(self.weights);
        let mut experts = vec![0; weights.len()];
        let (count, chosen) = (self.logits.shape.width() as usize, self.experts.shape.dim as usize);
        let scale = self.scale.map(|s| host.vector(s));
        let spec = cpu_ref::RouteSpec { experts: count, chosen, normalize: self.normalize, scale };
        cpu_ref::route(&spec, host.f32(self.logits), &mut experts, &mut weights);
        host.put_u32(self.experts, experts);
        host.put(self.weights, weights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tensor::{Counts, Lead};

    #[test]
    fn a_recording_knows_whether_its_rows_choose_experts() {
        let mut rec = crate::Recorder::new(Counts { step: 4, out: 0 }, &[]);
        let logits = rec.host_input(8, Shape::new(Lead::Step, 4, 8));
        assert!(!rec.chooses_experts());
        route(&mut rec, logits, 2, true, None);
        assert!(rec.chooses_experts());
    }
}
