//! Parity cases of `attention_decode`.

use super::attention::{Attend, attention};
use super::attention_decode::KEYS;
use super::kv_append::kv_append;
use crate::graph::record::RopeTable;
use crate::graph::tensor::{KvState, StateKind, Tensor};
use crate::kernel::random::Gen;
use crate::norm::pack_q8::pack_q8;
use crate::norm::rms_norm::rms_norm;
use crate::norm::rope::rope;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::{KvType, Mask};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention_decode", case)];

/// A row after others in the states, as models record it: after no key, some keys, and as many as
/// the kernel takes; normed or not, so small that eps counts; in whole states and in rings; with
/// and without a key and value of its own; and the contents of the states afterwards.
pub fn case(g: &mut Gen) -> Case {
    let (heads, dim, group) = (g.pick(&[1, 2, 3]), g.pick(&[32, 64, 128, 256, 512, 512]), g.pick(&[1, 2, 3]));
    let position = g.pick(&[0, 1, 2, 16, 63, 64, 65, 130, 400, 511, KEYS - 1]);
    let window = g.coin().then(|| g.pick(&[1, 2, 40, 64, 300]));
    let (capped, whole) = (g.coin(), g.coin());
    recorded(g, Drawn { heads, dim, group, position, window, capped, whole })
}

/// The properties of a case that depend on its seed: heads of keys and of queries for each, their
/// length, what the row sees, whether scores are capped and whether heads rotate as a whole.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Drawn {
    pub heads: u32,
    pub dim: u32,
    pub group: u32,
    pub position: u32,
    pub window: Option<u32>,
    pub capped: bool,
    pub whole: bool,
}

/// A row after earlier rows in the states, with the properties `drawn`. Its attention is the
/// result, in 8 bits or as it is.
pub(crate) fn recorded(g: &mut Gen, drawn: Drawn) -> Case {
    recorded_for(g, drawn, |case, g, y| {
        let y = packed(case, g, y);
        case.expect(y);
    })
}

/// An attention, in 8 bits or as it is.
pub(crate) fn packed(case: &mut Case, g: &mut Gen, y: Tensor) -> Tensor {
    if g.coin() { pack_q8(&mut case.rec, y) } else { y }
}

/// A row after earlier rows in the states, with these properties. `read` records an operation that
/// reads the attention of the row.
pub(crate) fn recorded_for(
    g: &mut Gen,
    Drawn { heads, dim, group, position, window, capped, whole }: Drawn,
    read: impl FnOnce(&mut Case, &mut Gen, Tensor),
) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let width = heads * dim;
    let ring = window.map(|window| window + g.pick(&[0, 3]));
    let kinds = [StateKind::Kv { ty, width, ring }; 2];
    let mut case = Case::with_states(1, &kinds, 2, if position < 512 { 512 } else { KEYS });
    case.input.positions = vec![position];
    case.input.sequences = vec![g.pick(&[0, 1])];
    let mask = window.map_or(Mask::Causal, |window| Mask::Window(window as usize));
    let attend = Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: capped.then_some(5.0) };
    let own = g.coin();
    case.hold(g, None);
    let table = case.rec.rope_rows(&RopeTable::new(if whole { dim } else { dim / 2 }, 1e4));
    let mut kv = KvState::new(case.rec.state(0), case.rec.state(1));
    let size = g.pick(&[3.0, 3.0, 1e-3]);
    let q = case.uniform(g, group * width, size).heads(group * heads);
    let wq = (!own || g.coin()).then(|| case.vector(g, dim));
    let q = wq.map_or(q, |w| rms_norm(&mut case.rec, q, Some(w), 1e-6));
    let q = rope(&mut case.rec, q, table);
    if own {
        let k = case.uniform(g, width, size).heads(heads);
        // Some cases have values far larger than the keys beside them. Blocks of keys must not use
        // the scale of the values.
        let large = g.coin();
        let v = if large { case.uniform(g, width, 1e3) } else { case.tensor(g, width) }.heads(heads);
        let wk = g.coin().then(|| case.vector(g, dim));
        let k = wk.map_or(k, |w| rms_norm(&mut case.rec, k, Some(w), 1e-6));
        let v = if !large && g.coin() { rms_norm(&mut case.rec, v, None, 1e-6) } else { v };
        let k = rope(&mut case.rec, k, table);
        kv = kv_append(&mut case.rec, kv, k, v);
    }
    let y = attention(&mut case.rec, q, kv, heads, attend);
    read(&mut case, g, y);
    // A later step reads this row's value, and the score of its key shows how much the value counts
    // relative to the one before.
    let later = case.uniform(g, width, 1.0).heads(heads);
    let found = attention(&mut case.rec, later, kv, heads, Attend { mask: Mask::Window(2), scale: 0.1, softcap: None });
    case.expect(found);
    case.options.precision = Precision::Fast;
    case
}
