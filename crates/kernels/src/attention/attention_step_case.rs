//! Parity cases of `attention` over keys of the step.

use super::attention::{Attend, attention};
use super::kv_append::kv_append;
use crate::graph::record::Recorder;
use crate::graph::tensor::{KvState, StateKind};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::{KvType, Mask};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_step", case)];

/// Several documents in a step, of one row and more, with every mask; windows that end inside a
/// document and beyond its first row.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim, group) = (g.pick(&[1, 3, 33, 129, 260]), g.pick(&[4, 64, 80, 128, 256, 512]), g.pick(&[1, 2, 3]));
    of_documents(g, rows, dim, group)
}

/// Several documents in a step of `rows` rows. A head has `dim` elements, and `group` heads share a
/// kv head.
pub(crate) fn of_documents(g: &mut Gen, rows: u32, dim: u32, group: u32) -> Case {
    let kv_heads = g.pick(&[1, 2]);
    let width = kv_heads * dim;
    let mut case = Case::with_states(rows, &[StateKind::kv(KvType::F16, width); 2], 1, 1);
    case.rec = Recorder::of_documents(case.rec.capacity(), &[StateKind::kv(KvType::F16, width); 2]);
    // First rows of the documents.
    let mut begins = [0, g.pick(&[0, 1, rows / 2, rows - 1]), g.pick(&[0, rows / 3, rows - 1])];
    begins.sort_unstable();
    let first = |t: u32| *begins.iter().rfind(|&&begin| begin <= t).unwrap_or(&0);
    let end = |t: u32| *begins.iter().find(|&&begin| begin > t).unwrap_or(&rows);
    case.input.firsts = (0..rows).map(first).collect();
    case.input.ends = (0..rows).map(end).collect();
    let mask = g.pick(&[Mask::Causal, Mask::Bidirectional, Mask::Window(1), Mask::Window(7), Mask::Window(90)]);
    let attend = Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: g.coin().then_some(50.0) };
    let (k, v) = (case.uniform(g, width, 3.0).heads(kv_heads), case.tensor(g, width).heads(kv_heads));
    let q = case.uniform(g, width * group, 3.0).heads(kv_heads * group);
    let kv = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = kv_append(&mut case.rec, kv, k, v);
    let y = attention(&mut case.rec, q, kv, kv_heads, attend);
    case.expect(y);
    case
}
