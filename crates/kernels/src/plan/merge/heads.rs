//! Rules of the norms and rotations of the heads of queries and keys.

use super::view::{Merged, Producers};
use crate::attention::attention;
use crate::language::{Lowered, Op};
use crate::norm::norm_rope::{NormRope, WG};
use crate::norm::norm_rope_append::{NormRopeAppend, lanes};
use crate::norm::norm_rope_heads::{NORM_ROPE_HEADS, NormRopeHeads};

/// Rotation of a norm of heads that has no other reader.
pub(super) fn norm_rope(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::Op(Op::Rope(rope)) = op else { return None };
    let Lowered::Op(Op::RmsNorm(norm)) = producers.alone(rope.x)? else { return None };
    // A head of the norm must be a head of the rotation and fit in the kernel's memory.
    let shape = norm.x.shape;
    let in_quads = shape.dim.is_multiple_of(4) && rope.table.shape.dim.is_multiple_of(8);
    if norm.y.shape != rope.x.shape || shape.dim > attention::MAX_HEAD_DIM || !in_quads {
        return None;
    }
    let op = NormRope { x: norm.x, w: norm.w, eps: norm.eps, table: rope.table, y: rope.y }.into();
    Some(Merged { op, of: vec![rope.x], early: false })
}

/// An append of keys that are rotated, perhaps normed, and have no other reader. The values are
/// appended unchanged or normed without a weight.
pub(super) fn norm_rope_append(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::Op(Op::KvAppend(append)) = op else { return None };
    let (k, norm_k, eps, table) = match producers.alone(append.k)? {
        Lowered::NormRope(rope) => (rope.x, Some(rope.w?), Some(rope.eps), rope.table),
        Lowered::Op(Op::Rope(rope)) => (rope.x, None, None, rope.table),
        _ => return None,
    };
    let normed = match producers.alone(append.v) {
        Some(Lowered::Op(Op::RmsNorm(norm))) if norm.w.is_none() && norm.x.shape.heads == k.shape.heads => Some(norm),
        _ => None,
    };
    let shape = k.shape;
    // The kernel writes a state, so its grid must have no spare workgroups: one dimension.
    let workgroups = u64::from(shape.rows) * u64::from(2 * shape.heads * lanes(shape.dim, 2 * shape.heads) / WG);
    let fits = shape.dim.is_multiple_of(32)
        && table.shape.dim.is_multiple_of(8)
        && shape.dim <= attention::MAX_HEAD_DIM
        && workgroups <= u64::from(producers.caps.max_grid);
    let same_eps = normed.is_none_or(|norm| eps.is_none_or(|eps| eps == norm.eps));
    if !fits || !same_eps {
        return None;
    }
    let op = NormRopeAppend {
        k,
        v: normed.map_or(append.v, |norm| norm.x),
        norm_k,
        norm_v: normed.is_some(),
        eps: eps.or(normed.map(|norm| norm.eps)).unwrap_or(0.0),
        table,
        positions: append.positions,
        sequences: append.sequences,
        state: append.state,
    };
    let of = std::iter::once(append.k).chain(normed.map(|_| append.v)).collect();
    Some(Merged { op: op.into(), of, early: false })
}

/// An append and a rotation of the queries with the same table. The rotation moves to the append.
pub(super) fn norm_rope_heads(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::NormRopeAppend(append) = op else { return None };
    let table = append.table.id;
    let rotation = producers.latest(|op| match op {
        Lowered::NormRope(rope) => rope.table.id == table,
        Lowered::Op(Op::Rope(rope)) => rope.table.id == table,
        _ => false,
    })?;
    let (q, norm_q, eps, y) = match rotation {
        Lowered::NormRope(NormRope { x, w, eps, y, .. }) => (*x, Some((*w)?), *eps, *y),
        Lowered::Op(Op::Rope(rope)) => (rope.x, None, append.eps, rope.y),
        _ => return None,
    };
    let (shape, of) = (q.shape, append.k.shape);
    let normed = append.norm_k.is_some() || append.norm_v;
    let heads = shape.heads + 2 * of.heads;
    let workgroups = u64::from(shape.rows) * u64::from(heads * lanes(of.dim, heads) / WG);
    let fits = shape.dim == of.dim && shape.rows == of.rows && workgroups <= u64::from(producers.caps.max_grid);
    if !fits || (normed && eps != append.eps) || !NORM_ROPE_HEADS.fits(producers.caps) || producers.read_since(y) {
        return None;
    }
    let append = NormRopeAppend { eps, ..append.clone() };
    Some(Merged { op: NormRopeHeads { append, q, norm_q, y }.into(), of: vec![y], early: false })
}
