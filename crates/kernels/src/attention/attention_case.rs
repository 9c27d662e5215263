//! Parity cases of `attention`.

use super::attention::{Attend, attention};
use crate::graph::operation::Parameter;
use crate::graph::tensor::{KvState, Lead, Shape, StateKind};
use crate::kernel::random::Gen;
use crate::norm::pack_f16::pack_f16_as_is;
use crate::norm::pack_q8::pack_q8;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::{KvType, Mask};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("attention", case)];

/// The parts of a case that are not drawn.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Drawn {
    pub ty: KvType,
    pub window: Option<usize>,
    pub rows: u32,
    pub dim: u32,
    /// Heads that share a kv head.
    pub group: Option<u32>,
    /// How the result is packed.
    pub packing: Packing,
    /// The rows come after more keys than the threads of a quad join parts of at once, and than
    /// rows of a sequence need for parts.
    pub late: bool,
}

/// How the result of an attention is packed.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Packing {
    None,
    Q8,
    /// In f16, without scales.
    F16,
}

impl Default for Drawn {
    fn default() -> Self {
        Self { ty: KvType::F32, window: None, rows: 1, dim: 64, group: None, packing: Packing::None, late: false }
    }
}

/// Rounds down elements of a row that an 8-bit state could round either way, because division is
/// not exact on every device.
pub(crate) fn settle(row: &mut [f32]) {
    for block in row.chunks_mut(32) {
        let d = block.iter().fold(0.0_f32, |most, v| most.max(v.abs())) / 127.0;
        let undecided = |v: f32| d > 0.0 && ((v / d).abs().fract() - 0.5).abs() < 1e-4;
        block.iter_mut().filter(|v| undecided(**v)).for_each(|v| *v = (*v / d).trunc() * d);
    }
}

/// The kinds of keys in a case.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Keys {
    Any,
    Equal,
    Outlier,
}

/// Appends a step of one sequence or several, then attends over it. With a window of one, the
/// result is the stored values.
pub(crate) fn appended(g: &mut Gen, ty: KvType, window: Option<usize>) -> Case {
    let dim = g.pick(&[4, 64, 80, 96, 128, 256, 512]);
    let rows = g.pick(&[1, 3, 33, 129, 260]);
    appended_as(g, Drawn { ty, window, rows, dim, ..Drawn::default() })
}

/// Appends a step of one sequence or several, then attends over it. `given` fixes some properties
/// of the case; `g` draws the other properties.
pub(crate) fn appended_as(g: &mut Gen, given: Drawn) -> Case {
    let Drawn { ty, window, rows, dim, group, packing, late } = given;
    let (kv_heads, drawn) = (g.pick(&[1, 2]), g.pick(&[1, 2, 3, 4]));
    let group = group.unwrap_or(drawn);
    let width = kv_heads * dim;
    let kinds = [StateKind::kv(ty, width); 2];
    // Few rows see enough keys to fill every part, also in a split attention.
    let capacity = if late {
        2040
    } else if rows > 5 {
        300
    } else {
        g.pick(&[300, 2040])
    };
    let mut case = Case::with_states(rows, &kinds, 2, capacity);
    // Equal keys have equal scores, however large. Sums must be relative to the largest score.
    // A key with a far larger score must be found at any index.
    let keys = g.pick(if late { &[Keys::Outlier, Keys::Equal] } else { &[Keys::Any, Keys::Outlier, Keys::Equal] });
    // A state of 8 bits holds equal keys with scales that differ in the last bit, because division
    // is not exact on every device. Their scores must be small.
    let size = if ty == KvType::Q8_0 { 10.0 } else { 100.0 };
    let mut key: Option<Vec<f32>> = (keys == Keys::Equal).then(|| g.units(width, size));
    if ty == KvType::Q8_0 {
        key.as_deref_mut().into_iter().for_each(settle);
    }
    case.hold(g, key.clone());
    // Sequences of unequal length: the first `split` rows are one sequence, the rest the other.
    let split = g.pick(&[rows, rows / 2, 1, rows - 1]);
    case.input.sequences = (0..rows).map(|t| u32::from(t >= split)).collect();
    // At the start of the state, or around its end.
    let somewhere = g.below(capacity);
    let before = if late { 1100 } else { 0 };
    let first = g.pick(&[before, before, capacity - 10, capacity - 2, capacity + 7, somewhere]);
    case.input.positions = (0..rows).map(|t| first + if t >= split { t - split } else { t }).collect();
    case.input.ends = (0..rows).map(|t| first + if t >= split { rows - split } else { split }).collect();
    let window = window.or_else(|| (g.coin() && !late).then(|| g.pick(&[1, 7, 90, 128, 400, 1000])));
    let mask = match window {
        Some(n) => Mask::Window(n),
        None => g.pick(&[Mask::Causal, Mask::Bidirectional]),
    };
    let outlier = keys == Keys::Outlier && window.is_none() && first > 0;
    let attend = Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: (g.coin() && !outlier).then_some(50.0) };
    let k = match key {
        Some(key) => case.given(Shape::new(Lead::Step, rows, width), key.repeat(rows as usize)),
        None => case.uniform(g, width, 3.0),
    };
    let (k, v) = (k.heads(kv_heads), case.tensor(g, width).heads(kv_heads));
    if ty == KvType::Q8_0 {
        case.input.host.iter_mut().flat_map(|values| values.chunks_mut(width as usize)).for_each(settle);
    }
    let mut q: Vec<f32> = g.units(rows * width * group, 3.0);
    if outlier {
        // Its scores are about 200; other scores are seldom above 30.
        let key: Vec<f32> = g.units(width, (600.0 / (dim as f32).sqrt()).sqrt());
        let heads = (0..kv_heads * group).flat_map(|head| &key[(head / group * dim) as usize..][..dim as usize]);
        q.iter_mut().zip(heads.cycle()).for_each(|(q, k)| *q += k);
        let anywhere = g.below(first.min(capacity));
        case.hold_alone(key, g.pick(&[0, anywhere]));
    }
    let q = case.given(Shape::new(Lead::Step, rows, width * group), q).heads(kv_heads * group);
    // The number of parts is the device table's, one, or some of several tiles.
    case.split_workgroups = g.pick(&[None, None, Some(1), Some(4)]);
    let kv = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = crate::attention::kv_append::kv_append(&mut case.rec, kv, k, v);
    let y = attention(&mut case.rec, q, kv, kv_heads, attend);
    match packing {
        Packing::None => case.expect(y),
        Packing::Q8 => {
            let y = pack_q8(&mut case.rec, y);
            case.expect(y);
        }
        Packing::F16 => {
            let (scales, halves) = pack_f16_as_is(&mut case.rec, y.flat());
            case.expect(scales);
            case.expect(halves);
        }
    }
    case
}

/// Head dims from 4 to 512, grouped heads, partly filled tiles of keys, every mask, softcaps, every
/// KV type.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    appended(g, ty, None)
}

impl Parameter for Attend {
    fn wrong(&self, _: &'static str) -> Vec<(&'static str, Self)> {
        let Self { mask, scale, softcap } = *self;
        let mut all: Vec<_> =
            scale.wrong("scale").into_iter().map(|(name, scale)| (name, Self { scale, ..*self })).collect();
        if let Some(cap) = softcap {
            let caps = cap.wrong("softcap").into_iter();
            all.extend(caps.map(|(name, cap)| (name, Self { softcap: Some(cap), ..*self })));
            all.push(("softcap lost", Self { softcap: None, ..*self }));
        }
        // Other changes of the mask are not valid recordings. A ring has only the rows of its
        // window, and only bidirectional recordings have the ends of rows.
        match mask {
            Mask::Window(n) => all.push(("window", Self { mask: Mask::Window(n + 1), ..*self })),
            Mask::Bidirectional => all.push(("mask", Self { mask: Mask::Causal, ..*self })),
            Mask::Causal => {}
        }
        all
    }
}
