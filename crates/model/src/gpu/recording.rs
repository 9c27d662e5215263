//! The recordings of a session: the forward pass of its model, and the output of its steps.

use crate::adapter::Adapted;
use crate::arch::{self, Architecture, Logits};
use kernels::ops::{penalize, sample};
use kernels::{Counts, Outputs, Recorder, StateKind, Tensor};

/// The output of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Head {
    /// The logits of every row.
    Logits,
    /// A drawn id and its log-probability for each row in `out_rows`. The id is also written to the
    /// token state, where the next step reads it.
    Sample { penalize: bool },
}

/// Identifies a plan by its capacity and head.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlanKey {
    pub rows: u32,
    pub out: u32,
    pub head: Head,
}

/// Appends a step to an empty recording. Returns the recording and the tensor of the logits.
pub(crate) fn record(
    architecture: &dyn Architecture,
    adapted: &Adapted,
    mut rec: Recorder,
    logits: Logits,
    sample: bool,
) -> (Recorder, Tensor) {
    adapted.additions.iter().for_each(|(weight, added, with)| added.adapt(&mut rec, *weight, *with));
    let kv = arch::kv_states(&rec, architecture.summary().caches.len());
    let logits = architecture.forward(&mut rec, &kv, logits);
    if !sample {
        rec.output(logits);
    }
    (rec, logits)
}

/// Records the step of a key.
pub(crate) fn recording(
    architecture: &dyn Architecture,
    adapted: &Adapted,
    kinds: &[StateKind],
    key: PlanKey,
) -> Recorder {
    let capacity = Counts { step: key.rows, out: key.out };
    match key.head {
        Head::Logits => record(architecture, adapted, Recorder::new(capacity, kinds), Logits::All, false).0,
        Head::Sample { penalize: penalized } => {
            let (mut rec, raw) = record(architecture, adapted, Recorder::new(capacity, kinds), Logits::Rows, true);
            let tokens = rec.state(0);
            let logits = if penalized { penalize(&mut rec, raw, tokens) } else { raw };
            let drawn = sample(&mut rec, logits, raw, tokens);
            rec.output(drawn);
            rec
        }
    }
}

/// The results of a step that draws: (id, log-probability) for each row in `out_rows`.
pub(crate) fn drawn(outputs: &Outputs) -> impl Iterator<Item = (u32, f32)> {
    outputs.0[0].chunks_exact(2).map(|row| (row[0], f32::from_bits(row[1])))
}
