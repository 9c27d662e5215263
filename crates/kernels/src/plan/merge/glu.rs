//! Rules of gated activations.

use super::rules::Origins;
use super::view::{Merged, Producers, Uses};
use crate::caps::Caps;
use crate::elementwise::geglu::Geglu;
use crate::elementwise::swiglu::Swiglu;
use crate::graph::operation::Operation;
use crate::graph::record::new_value;
use crate::graph::tensor::{Element, Shape, Tensor, Weight};
use crate::kernel::dispatch::Lower;
use crate::kernel::format;
use crate::kernel::split::parts;
use crate::language::{Lowered, Node, Op, Primitive};
use crate::matmul::matmul_tile128::DEPTH;
use crate::matmul::matmul_tile128_glu::{COLUMNS, MATMUL_TILE128_GLU, MatmulTile128Glu};
use crate::matmul::matmul_vec_glu::MatmulGlu;
use crate::matmul::matmul_vec_group::joins;
use crate::matmul::norm_matmul_vec_glu::{NORM_MATMUL_VEC_GLU, NormMatmulVecGlu};
use crate::matmul::norm_matmul_vec_group;
use crate::matmul::norm_pack_matmul_vec::Normed;
use crate::matmul::product::{Operand, Product};
use crate::norm::glu_pack_f16::{GLU_PACK_F16, GluPackF16};
use crate::norm::glu_pack_q8::GluPackQ8;
use crate::norm::level_f16::LevelF16;
use crate::norm::pack_f16::PackF16;
use crate::norm::pack_q8::BLOCK;
use std::collections::HashMap;

/// A gated activation without another reader: (gate, up, the first column of up, whether it is
/// gelu). All quads of up are whole.
fn gated(x: Tensor, producers: &Producers<'_>) -> Option<(Tensor, Tensor, u32, bool)> {
    let found = match producers.alone(x)? {
        Lowered::Op(Op::Swiglu(glu)) => (glu.gate, glu.up, 0, false),
        Lowered::Op(Op::Geglu(glu)) => (glu.gate, glu.up, glu.start, true),
        _ => return None,
    };
    (found.2.is_multiple_of(4) && found.1.shape.width().is_multiple_of(4)).then_some(found)
}

/// Packing of a gated activation that has no other reader.
pub(super) fn glu_pack_f16(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::PackF16(pack @ PackF16 { scaled: true, .. }) = op else { return None };
    let (gate, up, start, gelu) = gated(pack.x, producers).filter(|_| GLU_PACK_F16.fits(producers.caps))?;
    Some(Merged { op: GluPackF16 { gate, up, start, gelu, pack: pack.clone() }.into(), of: vec![pack.x], early: false })
}

/// Packing of a gated activation that has no other reader.
pub(super) fn glu_pack_q8(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::PackQ8(pack) = op else { return None };
    let (gate, up, start, gelu) = gated(pack.x, producers)?;
    Some(Merged { op: GluPackQ8 { gate, up, start, gelu, packed: pack.packed }.into(), of: vec![pack.x], early: false })
}

/// Columns with a common top.
const PART: u32 = 32;

/// Whether whole tiles cover both weights.
pub(super) fn serves(gate: Weight, up: Weight, caps: &Caps) -> bool {
    let alike = (gate.ty, gate.rows, gate.cols) == (up.ty, up.rows, up.cols);
    let in_groups = format::format(gate.ty).is_some_and(|f| f.units.is_some());
    let whole =
        gate.rows.is_multiple_of(COLUMNS) && gate.cols.is_multiple_of(DEPTH) && gate.cols <= caps.table.glu_columns;
    alike
        && in_groups
        && whole
        && MATMUL_TILE128_GLU.fits(caps)
        && parts(caps, gate.ty, gate.rows, gate.cols).len() == 1
}

/// Joins every packing of a gated activation with the activation and its two products, if none of
/// them has another reader.
pub(super) fn matmul_tile128_glu(
    nodes: Vec<Node>,
    origins: &mut Origins,
    read_back: &[Tensor],
    cx: &Lower<'_>,
) -> Vec<Node> {
    let uses = Uses::of(&nodes, read_back);
    let mut producers: HashMap<u32, usize> = HashMap::new();
    let mut out: Vec<Option<Node>> = Vec::with_capacity(nodes.len());
    for Node { op, parts, stage } in nodes {
        let made = |t: Tensor| producers.get(&t.id).copied().filter(|_| uses.once(t));
        let found = joined(&op, cx.caps, |t| Some((made(t)?, &out[made(t)?].as_ref()?.op)));
        if let (Some((mut glu, of)), Lowered::PackF16(pack)) = (found, &op) {
            let mut of = of;
            of.sort_unstable();
            let before = of.into_iter().filter_map(|at| out[at].take()).flat_map(|node| node.parts);
            let parts = before.chain(parts).collect();
            let shape = Shape { heads: 1, dim: glu.gate.rows / PART, ..pack.scales.shape };
            glu.tops = new_value(origins, Element::F32, shape);
            let level = LevelF16 { tops: glu.tops, scales: pack.scales, halves: pack.halves, slab: pack.slab };
            // Only the second operation reads the result of the first. The oracle of the second
            // computes both.
            out.push(Some(Node { op: glu.into(), parts: vec![], stage }));
            out.push(Some(Node { op: Primitive::from(level).into(), parts, stage }));
            continue;
        }
        for t in op.io().writes {
            producers.insert(t.id, out.len());
        }
        out.push(Some(Node { op, parts, stage }));
    }
    out.into_iter().flatten().collect()
}

/// The operation that replaces a packing, whose tops are not placed yet, and the operations whose
/// work it does.
pub(super) fn joined<'a>(
    op: &Lowered,
    caps: &Caps,
    made: impl Fn(Tensor) -> Option<(usize, &'a Lowered)>,
) -> Option<(MatmulTile128Glu, [usize; 3])> {
    let Lowered::PackF16(pack @ PackF16 { slab: 1.., scaled: true, .. }) = op else { return None };
    let (at, gate, up, gelu) = match made(pack.x)? {
        (at, Lowered::Op(Op::Swiglu(glu))) => (at, glu.gate, glu.up, false),
        (at, Lowered::Op(Op::Geglu(glu))) if glu.up.shape == glu.gate.shape => (at, glu.gate, glu.up, true),
        _ => return None,
    };
    let product = |t: Tensor| match made(t)? {
        (at, Lowered::Product(product @ Product { operand: Operand::F16 { scales }, bias: None, .. })) => {
            Some((at, product.x, *scales, product.w))
        }
        _ => None,
    };
    let ((gate_at, x, scales, gate), (up_at, same_x, _, up)) = (product(gate)?, product(up)?);
    let glu = MatmulTile128Glu { gate, up, x, scales, gelu, tops: scales, halves: pack.halves };
    (x == same_x && serves(gate, up, caps)).then_some((glu, [at, gate_at, up_at]))
}

/// A gated activation of two products in f32 of one row that have no other reader.
pub(super) fn norm_matmul_vec_glu(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let (of_gate, of_up, gelu, y) = match op {
        Lowered::Op(Op::Swiglu(Swiglu { gate, up, y })) => (*gate, *up, false, *y),
        Lowered::Op(Op::Geglu(Geglu { gate, up, start: 0, y })) => (*gate, *up, true, *y),
        _ => return None,
    };
    let product = |t: Tensor| match producers.alone(t)? {
        Lowered::Product(product) => Some(product),
        Lowered::NormMatmulVecGroup(group) if group.products.len() == 2 => {
            group.products.iter().find(|product| product.y.id == t.id)
        }
        _ => None,
    };
    let (gate, up) = (product(of_gate)?, product(of_up)?);
    let alike = gate.x == up.x && gate.w.rows == up.w.rows && gate.bias.is_none() && up.bias.is_none();
    let joined = [gate, up].iter().all(|product| norm_matmul_vec_group::joins(product, producers.caps));
    if !alike || !joined || !NORM_MATMUL_VEC_GLU.fits(producers.caps) {
        return None;
    }
    let op = NormMatmulVecGlu { row: Normed::plain(gate.x), gate: gate.clone(), up: up.clone(), gelu, y };
    Some(Merged { of: vec![gate.y, up.y], op: op.into(), early: false })
}

/// A packed gated activation of two products that have no other reader.
pub(super) fn matmul_vec_glu(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::GluPackQ8(GluPackQ8 { gate, up, start: 0, gelu, packed }) = op else { return None };
    let product = |t: Tensor| match producers.alone(t)? {
        Lowered::Product(product) => Some(product),
        Lowered::MatmulGroup(group) if group.products.len() == 2 => {
            group.products.iter().find(|product| product.y.id == t.id)
        }
        _ => None,
    };
    let (gate, up) = (product(*gate)?, product(*up)?);
    let alike = gate.x.id == up.x.id
        && (gate.w.ty, gate.w.rows) == (up.w.ty, up.w.rows)
        && gate.bias.is_none()
        && up.bias.is_none();
    if !alike || !gate.w.rows.is_multiple_of(BLOCK) || !joins(gate, producers.caps) || !joins(up, producers.caps) {
        return None;
    }
    let op = MatmulGlu { gate: gate.clone(), up: up.clone(), gelu: *gelu, packed: *packed };
    Some(Merged { of: vec![gate.y, up.y], op: op.into(), early: false })
}
