//! The step of an optimizer, in place.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference, Work};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Counts, State, StateKind, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering, fixed};
use cpu_ref::{AdamwSpec, AdamwStep, Adapted};

kernel! {
    ADAMW: "adamw",
    wgsl: ["training/adamw.wgsl", "shared/grid.wgsl", "training/pieces/is_number.wgsl"],
    params: Params { n: u32, keep1: f32, gain1: f32, keep2: f32, gain2: f32, eps: f32, decay: f32 },
    bindings: Bind { g: Read, squares: Read, step: Read, p: State, m: State, v: State },
    cpu: cpu_ref::adamw,
    nmse: 1e-10,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// Words in the step input of [`adamw()`].
const STEP_WORDS: u32 = 4;

/// A trained parameter, its gradient and its moments: states of as many plain words of f32.
#[derive(Copy, Clone, Debug)]
pub struct Moments {
    pub p: State,
    pub gradient: State,
    pub m: State,
    pub v: State,
}

/// p, m, v = a step of AdamW.
#[derive(Clone, Debug)]
pub struct Adamw {
    pub spec: AdamwSpec,
    pub of: Moments,
    pub words: u32,
    pub squares: Tensor,
    pub step: Tensor,
}

parameters! { Adamw: spec }

/// The words of the step input of [`adamw()`] in step `t`, the first of which is 1: the rate, the
/// largest norm of all gradients together (`f32::MAX` for no clipping), and the corrections of the
/// moments, computed in f64.
#[must_use]
pub fn adamw_step(spec: &AdamwSpec, rate: f32, most: f32, t: u32) -> [f32; STEP_WORDS as usize] {
    let AdamwStep { rate, most, corrections: [c1, c2] } = AdamwStep::new(spec, rate, most, t);
    [rate, most, c1, c2]
}

/// A step of AdamW with decoupled decay for one parameter, as in PyTorch. The gradient is
/// multiplied by min(1, most / (norm + 1e-6)), where `squares` \[1\] is the squared norm of all
/// gradients. `step` [1, 4] is an input of the step, as [`adamw_step`] makes it. If `squares` is
/// not finite, nothing changes.
pub fn adamw(rec: &mut Recorder<impl From<Adamw>>, spec: AdamwSpec, of: Moments, squares: Tensor, step: Tensor) {
    let Moments { p, gradient, m, v } = of;
    let StateKind::Words(words) = rec.kind(p) else { panic!("adamw of {:?}", rec.kind(p)) };
    assert!([gradient, m, v].iter().all(|&s| rec.kind(s) == StateKind::Words(words)), "adamw: {words} words each");
    assert_eq!(
        (squares.shape.elements(), step.shape.elements()),
        (1, u64::from(STEP_WORDS)),
        "adamw: one norm and one step"
    );
    rec.push(Adamw { spec, of, words, squares, step });
}

impl Operation for Adamw {
    fn io(&self) -> Io {
        Io { reads: vec![self.squares, self.step], writes: vec![] }
    }

    /// Reads four words for each parameter, and writes three.
    fn work(&self, _: Counts) -> Work {
        Work { flops: 16 * u64::from(self.words), bytes: 28 * u64::from(self.words), weight_bytes: 0 }
    }
}

impl Lowering for Adamw {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let AdamwSpec { beta1, beta2, eps, decay } = self.spec;
        let params = Params {
            n: self.words,
            keep1: beta1 as f32,
            gain1: (1.0 - beta1) as f32,
            keep2: beta2 as f32,
            gain2: (1.0 - beta2) as f32,
            eps: eps as f32,
            decay: decay as f32,
        };
        let Moments { p, gradient, m, v } = self.of;
        let bind = Bind {
            g: gradient.into(),
            squares: self.squares.into(),
            step: self.step.into(),
            p: p.into(),
            m: m.into(),
            v: v.into(),
        };
        vec![bind.dispatch(params, Grid::Elements { lead: fixed(self.words, 1), workgroup: 256, per_thread: 1 })]
    }
}

impl Reference for Adamw {
    fn reference(&self, host: &mut Host<'_>) {
        let Moments { p, gradient, m, v } = self.of;
        let [mut new_p, mut new_m, mut new_v] = [p, m, v].map(|state| host.state_f32(state));
        let &[rate, most, c1, c2] = host.f32(self.step) else { panic!("adamw: {STEP_WORDS} words of a step") };
        let step = AdamwStep { rate, most, corrections: [c1, c2] };
        let to = Adapted { p: &mut new_p, m: &mut new_m, v: &mut new_v };
        cpu_ref::adamw(&self.spec, &step, host.f32(self.squares)[0], &host.state_f32(gradient), to);
        for (state, words) in [(p, &new_p), (m, &new_m), (v, &new_v)] {
            host.put_state(state, words);
        }
    }
}
