//! Rules of attention: its parts, their join, and the operations before and after.

use super::rules::Origins;
use super::view::{Merged, Producers};
use crate::attention::attention::{Attend, Cached};
use crate::attention::attention_merge::{AttentionMerge, Form};
use crate::attention::attention_split::PART_WORDS;
use crate::attention::fused::{
    AttentionByLength, AttentionDecode, AttentionDecodeRowsF16, AttentionSplit, FlashParts, Heads, Problem, Rows,
};
use crate::attention::{attention_flash, attention_tile, ladder};
use crate::caps::table::measured::BY_ROWS_THREADS;
use crate::graph::record::new_value;
use crate::graph::tensor::{Counts, Element, Shape, StateKind, Tensor};
use crate::kernel::dispatch::Lower;
use crate::language::{Lowered, Node, Op};
use crate::norm::pack_f16::PackF16;
use crate::norm::pack_q8::BLOCK;
use cpu_ref::{KvType, Mask};

/// Whether results of this attention may be packed without a scale, as values that a state holds
/// in f16: a weighted mean of them is never larger than they are, and it loses no more precision
/// below the smallest f16 than the state lost already.
fn fits_f16(pack: &PackF16, split: &AttentionSplit, producers: &Producers<'_>) -> bool {
    !pack.scaled || matches!(producers.kind(split.of.kv.v), StateKind::Kv { ty: KvType::F16, .. })
}

/// Packing to f16 of a join that has no other reader.
pub(super) fn attention_merge_f16(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::PackF16(pack) = op else { return None };
    let unscaled = PackF16 { scaled: false, ..pack.clone() };
    let (op, split): (Lowered, _) = match producers.alone(pack.x)? {
        Lowered::AttentionMerge(merge) if matches!(merge.form, Form::F32) && merge.shape.rows > 1 => {
            let Lowered::AttentionSplit(split) = producers.of(merge.partial)? else { return None };
            (AttentionMerge { form: Form::F16(unscaled.into()), ..merge.clone() }.into(), split)
        }
        Lowered::AttentionByLength(by) => {
            let Rows::Split(split, _) = &*by.rows else { return None };
            (by.packed(unscaled)?.into(), split)
        }
        _ => return None,
    };
    fits_f16(pack, split, producers).then(|| Merged { op, of: vec![pack.x], early: false })
}

/// Packing to f16 of the attention of rows that have no other reader, with the operations before
/// it.
pub(super) fn attention_decode_rows_f16(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::PackF16(pack) = op else { return None };
    let (split, merge, tiles) = match producers.alone(pack.x)? {
        Lowered::AttentionMerge(merge) if matches!(merge.form, Form::F32) => match producers.alone(merge.partial)? {
            Lowered::AttentionSplit(split) => (split, Some(merge), &None),
            _ => return None,
        },
        Lowered::AttentionSplit(split) => (split, None, &None),
        Lowered::AttentionByLength(by) if by.pack.is_none() => match &*by.rows {
            Rows::Split(split, merge) => (split, merge.as_ref(), &by.tiles),
            Rows::Whole(_) => return None,
        },
        _ => return None,
    };
    let q = split.of.q;
    let heads = match producers.alone(q)? {
        Lowered::NormRopeHeads(heads) if heads.append.state.k == split.of.kv.k => heads,
        _ => return None,
    };
    let held = fits_f16(pack, split, producers);
    let partial = merge.map(|merge| merge.partial).filter(|_| tiles.is_none());
    let of = std::iter::once(pack.x).chain(partial).chain([q]).collect();
    let pack = PackF16 { scaled: false, ..pack.clone() };
    let op = AttentionDecodeRowsF16 {
        heads: heads.clone().into(),
        split: split.clone().into(),
        merge: merge.cloned(),
        tiles: tiles.clone(),
        pack,
    };
    if heads.q.shape != q.shape || !held || ladder::found(Problem::DecodeF16(&op), producers.caps).is_none() {
        return None;
    }
    Some(Merged { op: op.into(), of, early: false })
}

/// Packing of a join that has no other reader, perhaps of a join with the operations before it.
pub(super) fn attention_merge(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::PackQ8(pack) = op else { return None };
    let packed = |merge: &AttentionMerge| AttentionMerge { y: pack.packed, form: Form::Q8, ..merge.clone() };
    let (op, merge, early): (Lowered, _, _) = match producers.alone(pack.x)? {
        Lowered::AttentionMerge(merge) => (packed(merge).into(), merge, false),
        // It also writes the states, so it stays where it is.
        Lowered::AttentionDecode(decode) => {
            (AttentionDecode { merge: packed(&decode.merge), ..decode.clone() }.into(), &decode.merge, true)
        }
        _ => return None,
    };
    (matches!(merge.form, Form::F32) && merge.shape.dim.is_multiple_of(BLOCK)).then_some(Merged {
        op,
        of: vec![pack.x],
        early,
    })
}

/// A join of one row, or a packed join of several, with the split and the rotations before it.
pub(super) fn attention_decode(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::AttentionMerge(merge) = op else { return None };
    let Lowered::AttentionSplit(split) = producers.alone(merge.partial)? else { return None };
    let q = split.of.q;
    let heads = match producers.alone(q)? {
        Lowered::NormRopeHeads(heads) if heads.append.state.k == split.of.kv.k => Heads::All(heads.clone()),
        Lowered::NormRope(rope) if rope.w.is_some() => Heads::Queries(rope.clone()),
        _ => return None,
    };
    let shaped = heads.queries().shape == q.shape;
    let op = AttentionDecode { heads: heads.into(), split: split.clone().into(), merge: merge.clone() };
    if !(merge.in_8_bits() || q.shape.rows == 1)
        || !shaped
        || ladder::found(Problem::Decode(&op), producers.caps).is_none()
    {
        return None;
    }
    Some(Merged { op: op.into(), of: vec![merge.partial, q], early: false })
}

/// Rows up to which each row reads its keys by itself, whatever tiles there are. 65 rows of 8 heads
/// already have more workgroups than any table splits keys among.
const MAX_ROWS: u32 = 64;

/// Whether each row reads its keys by itself. Few rows do. More rows do where tiles have no
/// cooperative matrices and few threads ([`BY_ROWS_THREADS`]).
fn by_rows(of: &Cached, cx: &Lower<'_>) -> bool {
    let few = |threads: u32| threads <= BY_ROWS_THREADS * cx.caps.table.split_workgroups;
    of.q.shape.rows <= MAX_ROWS || !attention_flash::serves(of, cx) && attention_tile::threads(of).is_some_and(few)
}

/// Smallest number of keys in a part, for windows, whose length is known: two groups of 16, the
/// unit of parts.
const LEAST_KEYS: u32 = 32;

/// Largest number of parts: a join has no room for more.
const MAX_SPLITS: u32 = 64;

/// Splits the attention of few rows. [`crate::attention::attention_merge`] joins the
/// results. Rows that share many keys also get tiles with their keys in parts, where whole tiles
/// leave a device half empty.
pub(super) fn attention_split(nodes: Vec<Node>, origins: &mut Origins, _: &[Tensor], cx: &Lower<'_>) -> Vec<Node> {
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes {
        let cached = if let Lowered::Op(Op::Attention(of)) = &node.op {
            of.cached().map(|cached| (of.clone(), cached))
        } else {
            None
        };
        let Some((whole, of)) = cached else {
            out.push(node);
            continue;
        };
        let Shape { rows, heads, dim, .. } = of.q.shape;
        let fitting =
            cx.caps.max_binding_bytes / (4 * u64::from(rows) * u64::from(heads) * u64::from(dim + PART_WORDS));
        let most = u32::try_from(fitting).unwrap_or(u32::MAX).min(MAX_SPLITS);
        let split = split(&of, most, origins, cx);
        if let Some(tiles) = FlashParts::found(&of, most, cx, |shape| new_value(origins, Element::F32, shape)) {
            let rows = split.map_or_else(|| Rows::Whole(whole), |(split, merge)| Rows::Split(split, merge));
            out.push(Node {
                op: AttentionByLength { of, rows: rows.into(), tiles: Some(tiles.into()), pack: None }.into(),
                ..node
            });
            continue;
        }
        // The parts of the keys are not a tensor of the recording. The oracle of the join computes
        // both operations.
        match split {
            Some((split, Some(merge))) => {
                out.push(Node { op: split.into(), parts: vec![], stage: node.stage });
                out.push(Node { op: merge.into(), ..node });
            }
            Some((split, None)) => out.push(Node { op: split.into(), ..node }),
            None => out.push(node),
        }
    }
    out
}

/// The attention of few rows in at most `most` parts of the keys, with the join if there are
/// several.
fn split(
    of: &Cached,
    most: u32,
    origins: &mut Origins,
    cx: &Lower<'_>,
) -> Option<(AttentionSplit, Option<AttentionMerge>)> {
    let Shape { rows, heads, dim, .. } = of.q.shape;
    let whole = ladder::found(Problem::Split(&AttentionSplit { of: *of, splits: 1, partial: of.y }), cx.caps)?;
    if !by_rows(of, cx) || most == 0 {
        return None;
    }
    let sets = whole.grid.at(Counts { step: rows, out: rows }, u32::MAX)[0];
    let Attend { mask, scale: _, softcap: _ } = of.attend;
    let filled = if let Mask::Window(n) = mask { (n as u32).div_ceil(LEAST_KEYS).max(2) } else { MAX_SPLITS };
    let splits = (cx.caps.table.split_workgroups / sets).clamp(1, most).min(filled);
    if splits == 1 {
        return Some((AttentionSplit { of: *of, splits, partial: of.y }, None));
    }
    let partial =
        new_value(origins, Element::F32, Shape { heads: heads * splits, dim: dim + PART_WORDS, ..of.q.shape });
    let merge = AttentionMerge::of(of, splits, partial);
    Some((AttentionSplit { of: *of, splits, partial }, Some(merge)))
}
