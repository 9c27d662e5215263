//! Rules of norms, with the sums before them and the packing after them.

use super::view::{Merged, Producers, Uses};
use crate::caps::Caps;
use crate::elementwise::add::{Add, Term};
use crate::elementwise::mul::{Factor, Mul};
use crate::elementwise::scale::Scale;
use crate::graph::tensor::Tensor;
use crate::language::{Lowered, Node, Op};
use crate::norm::add_rms_norm::AddRmsNorm;
use crate::norm::norm_add::{NORM_ADD_PAIR, NormAdd, Packed, To};
use crate::norm::norm_add_f16::NORM_ADD_F16;
use crate::norm::norm_pack_f16::{NORM_PACK_F16, NormPackF16};
use crate::norm::norm_pack_q8::NormPackQ8;
use crate::norm::pack_f16::PackF16;
use crate::norm::pack_q8::{BLOCK, PackQ8};
use crate::norm::rms_norm::RmsNorm;

/// add(a, b) directly before a norm of whole rows of its result.
pub(super) fn add_rms_norm(nodes: &[Node], _: &Uses, _: &Caps) -> Option<(usize, Lowered)> {
    let [Node { op: Lowered::Op(Op::Add(sum)), .. }, Node { op: Lowered::Op(Op::RmsNorm(norm)), .. }, ..] = nodes
    else {
        return None;
    };
    let Term::Tensor(b) = sum.b else { return None };
    (norm.x == sum.y && norm.x.shape.heads == 1).then(|| {
        let fused = AddRmsNorm { a: sum.a, b, w: norm.w, eps: norm.eps, h: sum.y, x: norm.y };
        (2, fused.into())
    })
}

/// The sum of two tensors, one of which is a norm of rows or heads without another reader: (the
/// norm, the other tensor).
pub(super) fn normed<'a>(a: Tensor, b: Tensor, producers: &'a Producers<'_>) -> Option<(&'a RmsNorm, Tensor)> {
    let norm = |t: Tensor| match producers.alone(t)? {
        Lowered::Op(Op::RmsNorm(norm)) if norm.x.shape.dim.is_multiple_of(4) => Some(norm),
        _ => None,
    };
    norm(b).map(|norm| (norm, a)).or_else(|| norm(a).map(|norm| (norm, b)))
}

/// A sum made by these rules that is not packed yet.
pub(super) fn unpacked<'a>(t: Tensor, producers: &'a Producers<'_>) -> Option<&'a NormAdd> {
    let Lowered::NormAdd(sum) = producers.of(t)? else { return None };
    (sum.packed.is_none() && sum.b.shape.heads == 1 && sum.h.shape.width().is_multiple_of(BLOCK)).then_some(sum)
}

/// The sum of two tensors, one of which is the norm of the sum of two norms, none of them with
/// another reader: the experts' layer of Gemma 4, with its dense branch.
fn norm_add_pair(a: Tensor, b: Tensor, h: Tensor, producers: &Producers<'_>) -> Option<Merged> {
    let sum = |t: Tensor| match producers.alone(t)? {
        Lowered::AddRmsNorm(sum) if producers.unread(sum.h) && sum.h.shape.dim.is_multiple_of(4) => Some(sum),
        _ => None,
    };
    let (sum, a) = sum(b).map(|sum| (sum, a)).or_else(|| sum(a).map(|sum| (sum, b)))?;
    let norm = |t: Tensor| match producers.alone(t)? {
        Lowered::Op(Op::RmsNorm(norm)) if norm.x.shape.heads == 1 && norm.w.is_some() => Some(norm.clone()),
        _ => None,
    };
    let pair = [norm(sum.a)?, norm(sum.b)?];
    if !NORM_ADD_PAIR.fits(producers.caps) {
        return None;
    }
    let of = vec![pair[0].y, pair[1].y, sum.x];
    let (w, eps, pair) = (sum.w, sum.eps, Some(pair));
    let op = NormAdd { a, b: sum.h, w, eps, factor: None, scale: 1.0, h, packed: None, pair };
    Some(Merged { op: op.into(), of, early: false })
}

/// Sums with a norm, their factors, and their packing.
pub(super) fn norm_add(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    match op {
        Lowered::Op(Op::Add(Add { a, b: Term::Tensor(b), y })) => {
            let Some((norm, a)) = normed(*a, *b, producers) else { return norm_add_pair(*a, *b, *y, producers) };
            Some(Merged { of: vec![norm.y], op: NormAdd::new(a, norm, *y).into(), early: false })
        }
        Lowered::Op(Op::Mul(Mul { a, b: Factor::Row(factor), y })) if factor.cols == 1 => {
            let Lowered::NormAdd(sum) = producers.alone(*a)? else { return None };
            let plain = sum.factor.is_none() && sum.packed.is_none();
            let op = NormAdd { factor: Some(*factor), h: *y, ..sum.clone() };
            plain.then(|| Merged { op: op.into(), of: vec![*a], early: false })
        }
        Lowered::Op(Op::Scale(Scale { x, s, y })) => {
            let Lowered::NormAdd(sum) = producers.alone(*x)? else { return None };
            let op = NormAdd { scale: sum.scale * s, h: *y, ..sum.clone() };
            sum.packed.is_none().then(|| Merged { op: op.into(), of: vec![*x], early: false })
        }
        Lowered::PackQ8(PackQ8 { x, packed, .. }) => {
            let sum = unpacked(*x, producers)?;
            let op = NormAdd { packed: Some(Packed { to: To::Q8(*packed), norm: None }), ..sum.clone() };
            Some(Merged { op: op.into(), of: vec![*x], early: true })
        }
        Lowered::NormPackQ8(NormPackQ8 { a, sum: None, w, eps, packed }) => {
            let sum = unpacked(*a, producers)?;
            let op = NormAdd { packed: Some(Packed { to: To::Q8(*packed), norm: Some((*w, *eps)) }), ..sum.clone() };
            Some(Merged { op: op.into(), of: vec![*a], early: true })
        }
        Lowered::NormPackQ8(NormPackQ8 { a, sum: Some((b, h)), w, eps, packed }) => {
            let (norm, a) = normed(*a, *b, producers).filter(|(norm, _)| norm.x.shape.heads == 1)?;
            let packed = Some(Packed { to: To::Q8(*packed), norm: Some((*w, *eps)) });
            let sum = NormAdd { packed, ..NormAdd::new(a, norm, *h) };
            Some(Merged { of: vec![norm.y], op: sum.into(), early: false })
        }
        Lowered::PackF16(PackF16 { x, scales, halves, slab, scaled: true }) => {
            let sum = unpacked(*x, producers).filter(|sum| in_f16(sum, producers.caps))?;
            let packed = Some(Packed { to: To::F16 { scales: *scales, halves: *halves, slab: *slab }, norm: None });
            Some(Merged { op: NormAdd { packed, ..sum.clone() }.into(), of: vec![*x], early: true })
        }
        Lowered::NormPackF16(NormPackF16 { a, sum, w, eps, scales, halves, slab }) => {
            let packed =
                Some(Packed { to: To::F16 { scales: *scales, halves: *halves, slab: *slab }, norm: Some((*w, *eps)) });
            let (sum, of, early) = match sum {
                None => (unpacked(*a, producers)?.clone(), *a, true),
                Some((b, h)) => {
                    let (norm, a) = normed(*a, *b, producers).filter(|(norm, _)| norm.x.shape.heads == 1)?;
                    (NormAdd::new(a, norm, *h), norm.y, false)
                }
            };
            in_f16(&sum, producers.caps).then(|| Merged { op: NormAdd { packed, ..sum }.into(), of: vec![of], early })
        }
        _ => None,
    }
}

/// Whether a kernel packs this sum to f16.
fn in_f16(sum: &NormAdd, caps: &Caps) -> bool {
    sum.pair.is_none() && NORM_ADD_F16.fits(caps)
}

/// Packing of a norm of whole rows that has no other reader.
pub(super) fn norm_pack_f16(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::PackF16(pack @ PackF16 { scaled: true, .. }) = op else { return None };
    let (a, sum, w, eps) = match producers.alone(pack.x)? {
        Lowered::Op(Op::RmsNorm(norm)) if norm.x.shape.heads == 1 => (norm.x, None, norm.w, norm.eps),
        Lowered::AddRmsNorm(norm) => (norm.a, Some((norm.b, norm.h)), norm.w, norm.eps),
        _ => return None,
    };
    if !NORM_PACK_F16.fits(producers.caps) {
        return None;
    }
    let op = NormPackF16 { a, sum, w, eps, scales: pack.scales, halves: pack.halves, slab: pack.slab }.into();
    Some(Merged { op, of: vec![pack.x], early: true })
}

/// Packing of a norm of whole rows that has no other reader.
pub(super) fn norm_pack_q8(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::PackQ8(pack) = op else { return None };
    let (a, sum, w, eps) = match producers.alone(pack.x)? {
        Lowered::Op(Op::RmsNorm(norm)) if norm.x.shape.heads == 1 => (norm.x, None, norm.w, norm.eps),
        Lowered::AddRmsNorm(norm) => (norm.a, Some((norm.b, norm.h)), norm.w, norm.eps),
        _ => return None,
    };
    let op = NormPackQ8 { a, sum, w, eps, packed: pack.packed }.into();
    Some(Merged { op, of: vec![pack.x], early: true })
}
