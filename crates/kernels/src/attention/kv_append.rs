//! Writes keys and values into the KV state.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Input, KvState, Shape, State, StateKind, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    KV_APPEND: "kv_append",
    wgsl: ["attention/kv_append.wgsl", "shared/grid.wgsl"],
    params: Params { width: u32, rows: u32, capacity: u32 },
    bindings: Bind { k: Read, v: Read, positions: Read, sequences: Read, k_state: Kv(Write), v_state: Kv(Write) },
    cpu: cpu_ref::kv_append,
    nmse: 1e-10,
    needs: { threads: 64, workgroup_bytes: 0 },
}

/// state[slot of t] = (k\[t\], v\[t\]).
#[derive(Clone, Debug)]
pub struct KvAppend {
    pub k: Tensor,
    pub v: Tensor,
    pub positions: Tensor,
    pub sequences: Tensor,
    pub state: KvState,
}

parameters! { KvAppend }
values! { KvAppend: k, v, positions, sequences }

/// Stores `k` and `v` [T, K, H] at the step's positions in the type of the state, and returns the
/// state after that. In a recording [of documents](Recorder::of_documents) they are not stored and
/// stay tensors of the step.
pub fn kv_append(rec: &mut Recorder<impl From<KvAppend>>, state: KvState, k: Tensor, v: Tensor) -> KvState {
    let width = k.shape.width();
    for (s, t) in [(state.k, k), (state.v, v)] {
        let fits = matches!(rec.kind(s), StateKind::Kv { width: w, .. } if w == width && t.shape.width() == w);
        assert!(fits, "kv_append of rows of {} to {:?}", t.shape.width(), rec.kind(s));
    }
    let state = KvState { version: state.version + 1, ..state };
    if rec.keep(state, k, v) {
        return state;
    }
    let (positions, sequences) = (rec.input(Input::Positions), rec.input(Input::Sequences));
    rec.push(KvAppend { k, v, positions, sequences, state });
    state
}

impl Operation for KvAppend {
    fn io(&self) -> Io {
        Io { reads: vec![self.k, self.v, self.positions, self.sequences], writes: vec![] }
    }
}

impl Lowering for KvAppend {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let Shape { lead, rows, .. } = self.k.shape;
        let width = self.k.shape.width();
        let bind = Bind {
            k: self.k.into(),
            v: self.v.into(),
            positions: self.positions.into(),
            sequences: self.sequences.into(),
            k_state: self.state.k.into(),
            v_state: self.state.v.into(),
        };
        // Workgroups do not span rows, so that rows past the step do not write into the state.
        let grid = Grid::PerRow { lead: Shape::new(lead, rows, width), per_row: 1 };
        vec![bind.dispatch(Params { width, rows, capacity: 0 }, grid)]
    }
}

impl Reference for KvAppend {
    fn reference(&self, host: &mut Host<'_>) {
        for (state, t) in [(self.state.k, self.k), (self.state.v, self.v)] {
            let at = host.u32(self.positions).iter().zip(host.u32(self.sequences));
            let slots: Vec<usize> = at.map(|(&p, &s)| host.slot(state, s, p)).collect();
            let values = host.f32(t).to_vec();
            append(host, state, &slots, &values);
        }
    }
}

fn append(host: &mut Host<'_>, state: State, slots: &[usize], values: &[f32]) {
    let (ty, width) = host.kind(state).row();
    for (&slot, row) in slots.iter().zip(values.chunks_exact(width as usize)) {
        cpu_ref::kv_append(host.state_mut(state), ty, width as usize, slot, row);
    }
}
