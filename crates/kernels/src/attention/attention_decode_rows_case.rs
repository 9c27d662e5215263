//! Parity cases of `attention_decode_rows`.

use super::attention::{Attend, attention};
use super::kv_append::kv_append;
use crate::graph::record::RopeTable;
use crate::graph::tensor::{KvState, StateKind};
use crate::kernel::random::Gen;
use crate::norm::pack_q8::pack_q8;
use crate::norm::rms_norm::rms_norm;
use crate::norm::rope::rope;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::{KvType, Mask};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_decode_rows", case)];

pub(crate) const HEAD_DIM: u32 = 128;

/// Rows of separate sequences after others in the states, as models record them: after no key, some
/// of each quarter of the keys taken at a time, all, one more, and many; normed or not, heads so
/// small that eps counts; two rows of one sequence, which the form for long contexts serves; and
/// the contents of the states afterwards.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (rows, heads, group) = (g.pick(&[2, 3, 4, 5]), g.pick(&[1, 2, 3]), g.pick(&[1, 2, 3, 4]));
    let width = heads * HEAD_DIM;
    let mut case = Case::with_states(rows, &[StateKind::Kv { ty, width, ring: None }; 2], rows + 1, 512);
    let first = g.pick(&[0, 1]);
    case.input.sequences = (0..rows).rev().map(|row| row + first).collect();
    case.input.positions = (0..rows).map(|_| g.pick(&[0, 1, 2, 16, 20, 40, 56, 64, 65, 130, 400, 511])).collect();
    if g.pick(&[false, false, true]) {
        case.input.sequences[1] = case.input.sequences[0];
        case.input.positions[..2].copy_from_slice(&[30, 31]);
    }
    let attend = Attend { mask: Mask::Causal, scale: 1.0 / (HEAD_DIM as f32).sqrt(), softcap: None };
    case.hold(g, None);
    let table = case.rec.rope_rows(&RopeTable::new(HEAD_DIM, 1e4));
    let size = g.pick(&[3.0, 3.0, 1e-3]);
    let q = case.uniform(g, group * width, size).heads(group * heads);
    let (k, v) = (case.uniform(g, width, size).heads(heads), case.tensor(g, width).heads(heads));
    let normed = g.coin();
    let [q, k] = [q, k].map(|x| {
        // A large weight makes a score of the element of a key that the state may round the other
        // way.
        let w = normed.then(|| match ty {
            KvType::F32 => case.vector(g, HEAD_DIM),
            KvType::F16 | KvType::Q8_0 => case.given_vector(g.units(HEAD_DIM, 2.0)),
        });
        let x = w.map_or(x, |w| rms_norm(&mut case.rec, x, Some(w), 1e-6));
        rope(&mut case.rec, x, table)
    });
    let states = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = kv_append(&mut case.rec, states, k, v);
    let y = attention(&mut case.rec, q, kv, heads, attend);
    let y = pack_q8(&mut case.rec, y);
    case.expect(y);
    // A later step reads each row's value, and the score of its key shows how much the value counts
    // relative to the one before.
    let later = case.uniform(g, width, 1.0).heads(heads);
    let found = attention(&mut case.rec, later, kv, heads, Attend { mask: Mask::Window(2), scale: 0.1, softcap: None });
    case.expect(found);
    case.options.precision = Precision::Fast;
    case
}
