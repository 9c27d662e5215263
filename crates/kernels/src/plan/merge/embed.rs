//! Rules of embeddings, and of gathers of a step's only row.

use super::view::Uses;
use crate::caps::Caps;
use crate::elementwise::add::Add;
use crate::elementwise::gather_rows::GatherRows;
use crate::elementwise::mul::Mul;
use crate::language::{Lowered, Node, Op, Primitive};
use crate::matmul::embed::Embed;

/// An embedding whose only reader is a scale.
pub(super) fn embed(nodes: &[Node], uses: &Uses, _: &Caps) -> Option<(usize, Lowered)> {
    let [Node { op: Lowered::Op(Op::Embed(embed)), .. }, Node { op: Lowered::Op(Op::Scale(scale)), .. }, ..] = nodes
    else {
        return None;
    };
    let alone = scale.x.id == embed.y.id && uses.once(embed.y);
    alone.then(|| (2, Primitive::from(Embed { scale: scale.s, y: scale.y, ..embed.clone() }).into()))
}

/// An operation whose result is gathered from steps of one row.
pub(super) fn gather_rows(nodes: &[Node], uses: &Uses, _: &Caps) -> Option<(usize, Lowered)> {
    let [Node { op, .. }, Node { op: Lowered::Op(Op::GatherRows(gather)), .. }, ..] = nodes else { return None };
    let GatherRows { x, y, .. } = *gather;
    if x.shape.rows != 1 || y.shape.rows != 1 || !uses.once(x) {
        return None;
    }
    let op: Primitive = match op {
        Lowered::Op(Op::Add(add)) if add.y.id == x.id => Add { y, ..add.clone() }.into(),
        Lowered::Op(Op::Mul(mul)) if mul.y.id == x.id => Mul { y, ..mul.clone() }.into(),
        _ => return None,
    };
    Some((2, op.into()))
}
