//! Counts the steps of an optimizer that changed something.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{State, StateKind, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering, fixed};

kernel! {
    COUNT_STEP: "count_step",
    wgsl: ["training/count_step.wgsl", "shared/grid.wgsl", "training/pieces/is_number.wgsl"],
    params: Params { by: f32 },
    bindings: Bind { squares: Read, count: State },
    cpu: cpu_ref::count_step,
    nmse: 1e-12,
    needs: { threads: 1, workgroup_bytes: 0 },
}

/// count += 1 if squares is a number.
#[derive(Clone, Debug)]
pub struct CountStep {
    pub squares: Tensor,
    pub count: State,
}

parameters! { CountStep }

/// Adds 1 to `count`, a state of one word that holds an f32, unless `squares` \[1\] is not
/// finite: then [`adamw`](crate::ops::backward::adamw()) changes nothing either. (f32 counts
/// exactly up to 2^24.)
pub fn count_step(rec: &mut Recorder<impl From<CountStep>>, squares: Tensor, count: State) {
    assert_eq!(
        (squares.shape.elements(), rec.kind(count)),
        (1, StateKind::Words(1)),
        "count_step: one norm and one count"
    );
    rec.push(CountStep { squares, count });
}

impl Operation for CountStep {
    fn io(&self) -> Io {
        Io { reads: vec![self.squares], writes: vec![] }
    }
}

impl Lowering for CountStep {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let bind = Bind { squares: self.squares.into(), count: self.count.into() };
        vec![bind.dispatch(Params { by: 1.0 }, Grid::PerRow { lead: fixed(1, 1), per_row: 1 })]
    }
}

impl Reference for CountStep {
    fn reference(&self, host: &mut Host<'_>) {
        let counted = cpu_ref::count_step(host.f32(self.squares)[0], host.state_f32(self.count)[0]);
        host.put_state(self.count, &[counted]);
    }
}
