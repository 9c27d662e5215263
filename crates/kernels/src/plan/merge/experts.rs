//! Rules of experts: the router with the norm before it, and the products of few rows with the
//! operations after them.

use super::rules::Origins;
use super::view::{Merged, Producers};
use crate::caps::Caps;
use crate::elementwise::scale::Scale;
use crate::experts::combine_experts::CombineExperts;
use crate::experts::matmul_vec_q8_experts::MatmulVecQ8Experts;
use crate::experts::matmul_vec_q8_experts_glu::{GATED, MOST_EXPERTS, MatmulExpertsGlu, ROUTED, variant};
use crate::experts::matmul_vec_q8_experts_sum::{MATMUL_VEC_Q8_EXPERTS_SUM, MatmulExpertsSum};
use crate::graph::operation::Operation;
use crate::graph::tensor::{Tensor, Weight};
use crate::kernel::dispatch::Lower;
use crate::kernel::split::parts;
use crate::language::{Lowered, Node, Op};
use crate::matmul::norm_matmul_vec::{self, NormMatmulVec};
use crate::matmul::product::{Operand, Product};
use crate::norm::glu_pack_q8::GluPackQ8;
use crate::norm::pack_q8::BLOCK;
use crate::norm::rms_norm::RmsNorm;

/// Gives every router the norm before it, if another reader of the normed rows packs them: the norm
/// then merges with the packing. Only plans that round freely have it, because the result depends
/// on the number of rows.
pub(super) fn norm_matmul_vec(nodes: Vec<Node>, _: &mut Origins, read_back: &[Tensor], cx: &Lower<'_>) -> Vec<Node> {
    let rounded = |node: &Node| matches!(node.op, Lowered::MatmulVecQ8Experts(_) | Lowered::MatmulTile64Experts(_));
    if !nodes.iter().any(rounded) {
        return nodes;
    }
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    for at in 0..nodes.len() {
        let Some((op, norm, of)) = router(&nodes, at, read_back, cx.caps) else { continue };
        if let Some(node) = &mut nodes[at] {
            node.op = op.into();
            node.parts.insert(0, norm.into());
        }
        if let Some(of) = of {
            nodes[of] = None;
        }
    }
    nodes.into_iter().flatten().collect()
}

/// The operation that replaces the product at `at`, the norm that it takes in, and the index of the
/// norm if the product is its only reader.
fn router(
    nodes: &[Option<Node>],
    at: usize,
    read_back: &[Tensor],
    caps: &Caps,
) -> Option<(NormMatmulVec, RmsNorm, Option<usize>)> {
    let Lowered::Product(Product { w, x, operand: Operand::F32, exact: true, bias: None, y }) = nodes[at].as_ref()?.op
    else {
        return None;
    };
    if !norm_matmul_vec::serves(w, x.shape.rows, caps) || read_back.iter().any(|t| t.id == x.id) {
        return None;
    }
    let op = |place: usize| nodes[place].as_ref().map(|node| &node.op);
    let place = (0..at).find(|&place| op(place).is_some_and(|op| op.io().writes.iter().any(|t| t.id == x.id)))?;
    let (norm, alone) = match op(place)? {
        Lowered::Op(Op::RmsNorm(norm)) if norm.x.shape.heads == 1 => (norm.clone(), Some(place)),
        Lowered::AddRmsNorm(sum) => (RmsNorm { x: sum.h, w: sum.w, eps: sum.eps, y: sum.x }, None),
        _ => return None,
    };
    let others: Vec<&Lowered> = (0..nodes.len())
        .filter(|&other| other != at)
        .filter_map(op)
        .filter(|op| op.io().reads.iter().any(|t| t.id == x.id))
        .collect();
    let gone = match others[..] {
        [] => Some(alone?),
        [Lowered::PackQ8(_) | Lowered::PackF16(_)] => None,
        _ => return None,
    };
    Some((NormMatmulVec { w, h: norm.x, u: norm.w, eps: norm.eps, scale: 1.0, y }, norm, gone))
}

/// Whether one binding holds the weight.
fn whole(w: Weight, caps: &Caps) -> bool {
    parts(caps, w.ty, w.rows, w.cols).len() == 1
}

/// A factor on a router's result that has no other reader.
pub(super) fn scaled_router(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::Op(Op::Scale(Scale { x, s, y })) = op else { return None };
    let Lowered::NormMatmulVec(router) = producers.alone(*x)? else { return None };
    let op = NormMatmulVec { scale: router.scale * s, y: *y, ..router.clone() };
    Some(Merged { op: op.into(), of: vec![*x], early: false })
}

/// The product of experts that makes this value alone.
fn product<'a>(t: Tensor, producers: &'a Producers<'_>) -> Option<&'a MatmulVecQ8Experts> {
    let Lowered::MatmulVecQ8Experts(product) = producers.alone(t)? else { return None };
    whole(product.of.w, producers.caps).then_some(product)
}

/// A packed gated activation of the experts' two products, which have no other reader.
pub(super) fn matmul_vec_q8_experts_glu(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::GluPackQ8(GluPackQ8 { gate, up, start: 0, gelu, packed }) = op else { return None };
    let (gate, up) = (product(*gate, producers)?, product(*up, producers)?);
    let experts = |of: &MatmulVecQ8Experts| (of.packed.id, of.of.w.ty, of.of.y.shape, of.of.routes.experts.id);
    let alike = experts(gate) == experts(up) && gate.of.x.shape.heads == 1;
    let runs = gate.of.routes.groups.is_some() || variant(&GATED, *gelu, gate.of.w.cols, producers.caps).is_some();
    if !alike || !gate.of.y.shape.dim.is_multiple_of(BLOCK) || !runs {
        return None;
    }
    let op = MatmulExpertsGlu { gate: gate.clone(), up: up.clone(), gelu: *gelu, packed: *packed, route: None };
    Some(Merged { of: vec![gate.of.y, up.of.y], op: op.into(), early: false })
}

/// The gated products of experts with the choice of the experts, which no operation between them
/// reads.
pub(super) fn matmul_vec_q8_experts_glu_route(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::MatmulExpertsGlu(glu @ MatmulExpertsGlu { route: None, .. }) = op else { return None };
    let Lowered::Op(Op::Route(route)) = producers.of(glu.gate.of.routes.experts)? else { return None };
    let read = producers.read_since(route.experts) || producers.read_since(route.weights);
    if read
        || route.logits.shape.width() > MOST_EXPERTS
        || variant(&ROUTED, glu.gelu, glu.gate.of.w.cols, producers.caps).is_none()
    {
        return None;
    }
    let op = MatmulExpertsGlu { route: Some(route.clone()), ..glu.clone() };
    Some(Merged { op: op.into(), of: vec![route.experts], early: false })
}

/// The weighted sum of the results of a product that have no other reader.
pub(super) fn matmul_vec_q8_experts_sum(op: &Lowered, producers: &Producers<'_>) -> Option<Merged> {
    let Lowered::Op(Op::CombineExperts(CombineExperts { x, weights, y })) = op else { return None };
    let product = product(*x, producers)?;
    if product.of.per() != 1 || product.of.routes.groups.is_some() || !MATMUL_VEC_Q8_EXPERTS_SUM.fits(producers.caps) {
        return None;
    }
    Some(Merged {
        op: MatmulExpertsSum { product: product.clone(), weights: *weights, y: *y }.into(),
        of: vec![*x],
        early: false,
    })
}
