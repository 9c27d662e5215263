//! Parity cases of `attention_decode_128`.

use super::attention::{Attend, attention};
use super::attention_decode_case::packed;
use super::fused::HEAD_DIM;
use super::kv_append::kv_append;
use crate::graph::record::RopeTable;
use crate::graph::tensor::{KvState, StateKind};
use crate::kernel::random::Gen;
use crate::norm::rms_norm::rms_norm;
use crate::norm::rope::rope;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::{KvType, Mask};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_decode_128", case)];

/// A row after others in the states, as models record it: after no key, some of each quarter of the
/// keys taken at a time, all, one more, and as many as the kernel takes; normed or not, so small
/// that eps counts; and the contents of the states of one sequence and of two afterwards.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (heads, group) = (g.pick(&[1, 2, 3]), g.pick(&[1, 2, 3]));
    let width = heads * HEAD_DIM;
    let position = g.pick(&[0, 1, 2, 16, 20, 40, 56, 64, 65, 130, 400, 511]);
    let sequences = g.pick(&[1, 2]);
    let mut case = Case::with_states(1, &[StateKind::Kv { ty, width, ring: None }; 2], sequences, 512);
    case.input.positions = vec![position];
    case.input.sequences = vec![g.pick(&[0, sequences - 1])];
    let attend = Attend { mask: Mask::Causal, scale: 1.0 / (HEAD_DIM as f32).sqrt(), softcap: None };
    case.hold(g, None);
    let table = case.rec.rope_rows(&RopeTable::new(HEAD_DIM, 1e4));
    let size = g.pick(&[3.0, 3.0, 1e-3]);
    let q = case.uniform(g, group * width, size).heads(group * heads);
    let (k, v) = (case.uniform(g, width, size).heads(heads), case.tensor(g, width).heads(heads));
    let normed = g.coin();
    let [q, k] = [q, k].map(|x| {
        let w = normed.then(|| case.vector(g, HEAD_DIM));
        let x = w.map_or(x, |w| rms_norm(&mut case.rec, x, Some(w), 1e-6));
        rope(&mut case.rec, x, table)
    });
    let states = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = kv_append(&mut case.rec, states, k, v);
    let y = attention(&mut case.rec, q, kv, heads, attend);
    let y = packed(&mut case, g, y);
    case.expect(y);
    // A later step reads this row's value, and the score of its key shows how much the value counts
    // relative to the one before.
    let later = case.uniform(g, width, 1.0).heads(heads);
    let found = attention(&mut case.rec, later, kv, heads, Attend { mask: Mask::Window(2), scale: 0.1, softcap: None });
    case.expect(found);
    case.options.precision = Precision::Fast;
    case
}
