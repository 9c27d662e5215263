//! Derivative of a look-up in an embedding table by the table.

use super::embed::{Embed, Ids};
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Input, State, StateKind, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    EMBED_BACKWARD: "embed_backward",
    wgsl: ["matmul/embed_backward.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32 },
    bindings: Bind { dy: Read, ids: Read, step_rows: Read, g: State },
    cpu: cpu_ref::embed_backward,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 5120 },
}

/// g[id of t] += dy\[t\].
#[derive(Clone, Debug)]
pub struct EmbedBackward {
    pub dy: Tensor,
    pub ids: Tensor,
    pub step_rows: Tensor,
    pub g: State,
}

parameters! { EmbedBackward }

/// g\[v\] += sum of dy\[t\] over the rows of the step with the id v: the derivative of `look_up` by
/// its table [V, D], from the derivative `dy` [T, D] by its result; `g` holds [V, D] as plain words
/// of f32. Every id is below V.
///
/// # Panics
/// When the ids are in a state: only recordings of documents are differentiable.
pub fn embed_backward(rec: &mut Recorder<impl From<EmbedBackward>>, look_up: &Embed, dy: Tensor, g: State) {
    let Ids::Step { ids, .. } = look_up.ids else { panic!("derivatives of ids in a state") };
    let table = look_up.table;
    assert_eq!(
        rec.kind(g),
        StateKind::Words(table.rows * table.cols),
        "embed_backward: [{}, {}]",
        table.rows,
        table.cols
    );
    assert!(dy.shape.width() == table.cols && look_up.scale == 1.0, "embed_backward: rows of {}", dy.shape.width());
    let step_rows = rec.input(Input::Rows);
    rec.push(EmbedBackward { dy, ids, step_rows, g });
}

impl Operation for EmbedBackward {
    fn io(&self) -> Io {
        Io { reads: vec![self.dy, self.ids, self.step_rows], writes: vec![] }
    }
}

impl Lowering for EmbedBackward {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let params = Params { dim: self.dy.shape.width(), rows: self.dy.shape.rows };
        let bind =
            Bind { dy: self.dy.into(), ids: self.ids.into(), step_rows: self.step_rows.into(), g: self.g.into() };
        vec![bind.dispatch(params, Grid::PerRow { lead: self.dy.shape, per_row: 1 })]
    }
}

impl Reference for EmbedBackward {
    fn reference(&self, host: &mut Host<'_>) {
        let mut g = host.state_f32(self.g);
        cpu_ref::embed_backward(host.f32(self.dy), host.u32(self.ids), self.dy.shape.width() as usize, &mut g);
        host.put_state(self.g, &g);
    }
}
