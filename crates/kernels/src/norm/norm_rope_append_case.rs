//! Parity cases of `norm_rope_append`.

use super::rms_norm::rms_norm;
use super::rope::rope;
use crate::attention::attention::{Attend, attention};
use crate::attention::kv_append::kv_append;
use crate::graph::record::RopeTable;
use crate::graph::tensor::{KvState, Lead, Shape, StateKind};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use cpu_ref::{KvType, Mask};
use half::f16;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_rope_append", case)];

/// Whether f32 rounds each of these elements, which start a block of a state, as f64 does: no
/// element is within an f32 error of the middle between two values that the state can hold. A
/// rotated element has the error of its whole pair, whose other element is `apart` elements away.
pub(crate) fn settled(ty: KvType, row: &[f32], apart: usize) -> bool {
    const ERROR: f32 = 4e-7;
    let size = |i: usize| match i {
        i if i < apart => row[i].hypot(row[i + apart]),
        i if i < 2 * apart => row[i].hypot(row[i - apart]),
        i => row[i].abs(),
    };
    match ty {
        KvType::F32 => true,
        KvType::F16 => row
            .iter()
            .enumerate()
            .all(|(i, v)| f16::from_f32(v - size(i) * ERROR) == f16::from_f32(v + size(i) * ERROR)),
        KvType::Q8_0 => row.chunks(32).zip((0..).step_by(32)).all(|(block, start)| {
            let d = block.iter().fold(0.0_f32, |most, v| most.max(v.abs())) / 127.0;
            let far = |(i, v): (usize, &f32)| ((v / d).abs().fract() - 0.5).abs() > (127.0 + size(i) / d) * ERROR;
            d == 0.0 || (start..).zip(block).all(far)
        }),
    }
}

/// A head that is drawn until its value after `finish` is settled in a state of this type.
pub(crate) fn head(
    ty: KvType,
    apart: usize,
    draw: impl FnMut() -> Vec<f32>,
    finish: impl Fn(Vec<f32>) -> Vec<f32>,
) -> Vec<f32> {
    std::iter::repeat_with(draw).find(|head| settled(ty, &finish(head.clone()), apart)).expect("an endless supply")
}

pub(crate) const EPS: f32 = 1e-6;

pub(crate) fn normed(x: &[f32], w: Option<&[f32]>) -> Vec<f32> {
    let mut y = vec![0.0; x.len()];
    cpu_ref::rms_norm(x, w, x.len(), f64::from(EPS), &mut y);
    y
}

/// A head at a position.
pub(crate) fn rotated(x: &[f32], table: &RopeTable, position: u32) -> Vec<f32> {
    let (mut rows, mut y) = (vec![0.0; table.dim as usize], vec![0.0; x.len()]);
    let spec =
        cpu_ref::RopeSpec { dim: table.dim as usize, base: table.base, scale: 1.0, factors: None, magnitude: 1.0 };
    cpu_ref::rope_rows(&spec, &[position], &mut rows);
    cpu_ref::rope(x, &rows, 1, x.len(), &mut y);
    y
}

/// The parts as models record them, then the contents of the state, read by attention with a window
/// of one.
pub fn case(g: &mut Gen) -> Case {
    recorded(g, false)
}

/// The parts of [`case`]. If `queries`, the table that rotates the keys also rotates the queries.
pub(crate) fn recorded(g: &mut Gen, queries: bool) -> Case {
    let ty = g.pick(&[KvType::F32, KvType::F16, KvType::Q8_0]);
    let (rows, heads, dim) = (g.pick(&[1, 3, 26]), g.pick(&[1, 2, 5]), g.pick(&[32, 64, 96, 128, 256, 512]));
    let width = heads * dim;
    let kinds = [StateKind::kv(ty, width); 2];
    let mut case = Case::with_states(rows, &kinds, 2, 30);
    case.input.sequences = (0..rows).map(|t| t % 2).collect();
    let table = RopeTable::new(g.pick(&[dim, dim, dim / 2, 8]), 1e4);
    // If scores count, weights have ordinary magnitudes: a large score depends on the last bits of
    // its terms.
    let alone = g.coin();
    let weight = |g: &mut Gen| if alone { g.values(dim as usize) } else { g.units(dim, 2.0) };
    let (w, norm_v) = (g.coin().then(|| weight(g)), g.coin());
    let finish_k = |t, k: Vec<f32>| rotated(&w.as_ref().map_or(k.clone(), |w| normed(&k, Some(w))), &table, t);
    let finish_v = |v: Vec<f32>| if norm_v { normed(&v, None) } else { v };
    // The norm of small keys is determined by eps.
    let size = if w.is_some() { g.pick(&[3.0, 1e-3]) } else { 3.0 };
    let (mut k, mut v) = (vec![], vec![]);
    for n in 0..rows * heads {
        k.extend(head(ty, table.dim as usize / 2, || g.units(dim, size), |k| finish_k(n / heads, k)));
        v.extend(head(ty, 0, || g.values(dim as usize), finish_v));
    }
    let shape = Shape::new(Lead::Step, rows, width);
    let (k, v) = (case.given(shape, k).heads(heads), case.given(shape, v).heads(heads));
    let w = w.map(|w| case.given_vector(w));
    let k = w.map_or(k, |w| rms_norm(&mut case.rec, k, Some(w), EPS));
    let v = if norm_v { rms_norm(&mut case.rec, v, None, EPS) } else { v };
    let table = case.rec.rope_rows(&table);
    let k = rope(&mut case.rec, k, table);
    let q_heads = if queries { heads * g.pick(&[1, 3]) } else { heads };
    let q = case.uniform(g, q_heads * dim, 3.0).heads(q_heads);
    let q_weight = (queries && g.coin()).then(|| case.given_vector(weight(g)));
    let q = q_weight.map_or(q, |w| rms_norm(&mut case.rec, q, Some(w), 1e-6));
    let q = if queries { rope(&mut case.rec, q, table) } else { q };
    let kv = KvState::new(case.rec.state(0), case.rec.state(1));
    let kv = kv_append(&mut case.rec, kv, k, v);
    let mask = if alone { Mask::Window(1) } else { Mask::Causal };
    let y = attention(&mut case.rec, q, kv, heads, Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap: None });
    case.expect(y);
    case
}
