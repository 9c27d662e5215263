//! Lets products of one normed row norm and pack the row themselves. The row is then made by a
//! product and a sum in any number of workgroups, because no workgroup has to know the whole row,
//! or a block of 32 packed elements of it.

use super::rules::{Direction, RULES};
use crate::caps::Caps;
use crate::elementwise::add::{Add, Term};
use crate::graph::operation::Operation;
use crate::graph::tensor::Tensor;
use crate::language::{Lowered, Node, Op, Primitive};
use crate::matmul::matmul_vec_q8::MatmulVecAdd;
use crate::matmul::norm_pack_matmul_vec::Normed;
use crate::matmul::product::Operand;
use crate::norm::add_rms_norm::AddRmsNorm;
use crate::norm::norm_add::NormAdd;
use std::collections::HashSet;

/// Applies the rules to every normed or packed row whose only consumer can make it.
pub fn packing(nodes: Vec<Node>, read_back: &[Tensor], caps: &Caps) -> Vec<Node> {
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    for at in 0..nodes.len() {
        let Some((consumer, op)) = consumer(&nodes, at, read_back, caps) else { continue };
        let Some((of, producer)) = producer(&nodes, at, read_back) else { continue };
        let parts = [of, Some(at)]
            .into_iter()
            .flatten()
            .filter_map(|place| Some(nodes[place].as_ref()?.parts.clone()))
            .flatten()
            .collect();
        if let Some(of) = of {
            nodes[of] = None;
        }
        let (kept, moved) = divided(parts, producer.as_ref());
        match (&mut nodes[at], producer) {
            (Some(node), Some(producer)) => (node.op, node.parts) = (producer, kept),
            (slot, _) => *slot = None,
        }
        if let Some(node) = &mut nodes[consumer] {
            node.op = op;
            node.parts.splice(0..0, moved);
        }
    }
    nodes.into_iter().flatten().collect()
}

/// The parts that `producer` needs for what it writes, and the other parts, which move to the
/// consumer.
fn divided(parts: Vec<Primitive>, producer: Option<&Lowered>) -> (Vec<Primitive>, Vec<Primitive>) {
    let mut wanted: HashSet<u32> =
        producer.map_or_else(Vec::new, |producer| producer.io().writes).iter().map(|t| t.id).collect();
    let mut keeps = vec![false; parts.len()];
    for (part, keep) in parts.iter().zip(&mut keeps).rev() {
        let io = part.io();
        *keep = io.writes.iter().any(|t| wanted.contains(&t.id));
        if *keep {
            wanted.extend(io.reads.iter().map(|t| t.id));
        }
    }
    let mut keeps = keeps.into_iter();
    parts.into_iter().partition(|_| keeps.next() == Some(true))
}

fn reads(node: &Option<Node>, t: Tensor) -> bool {
    node.as_ref().is_some_and(|node| node.op.io().reads.iter().any(|read| read.id == t.id))
}

/// The index of the only consumer of the row that the operation at `at` norms or packs, and the
/// operation that replaces the consumer when it does so.
fn consumer(nodes: &[Option<Node>], at: usize, read_back: &[Tensor], caps: &Caps) -> Option<(usize, Lowered)> {
    let (row, made) = match &nodes[at].as_ref()?.op {
        Lowered::MatmulVecNorm(norm) => (Normed { h: norm.h, u: norm.u, eps: Some(norm.eps) }, norm.packed),
        Lowered::NormPackQ8(norm) => {
            (Normed { h: norm.sum.map_or(norm.a, |(_, h)| h), u: norm.w, eps: Some(norm.eps) }, norm.packed)
        }
        Lowered::PackQ8(pack) => (Normed::plain(pack.x), pack.packed),
        Lowered::Op(Op::RmsNorm(norm)) if norm.x.shape.heads == 1 => {
            (Normed { h: norm.x, u: norm.w, eps: Some(norm.eps) }, norm.y)
        }
        Lowered::AddRmsNorm(sum) => (Normed { h: sum.h, u: sum.w, eps: Some(sum.eps) }, sum.x),
        _ => return None,
    };
    if read_back.iter().any(|t| t.id == made.id) {
        return None;
    }
    let mut consumers = (at + 1..nodes.len()).filter(|&later| reads(&nodes[later], made));
    let (consumer, None) = (consumers.next()?, consumers.next()) else { return None };
    let op = &nodes[consumer].as_ref()?.op;
    let op = RULES
        .iter()
        .find_map(|rule| if let Direction::Packing(of) = rule.direction { of(&row, op, caps) } else { None });
    Some((consumer, op?))
}

/// What remains of the operation at `at` when it no longer norms and packs, if anything, and the
/// index of the operation that moves there.
fn producer(nodes: &[Option<Node>], at: usize, read_back: &[Tensor]) -> Option<(Option<usize>, Option<Lowered>)> {
    match &nodes[at].as_ref()?.op {
        Lowered::MatmulVecNorm(norm) => {
            let op = MatmulVecAdd { product: norm.product.clone(), a: norm.a, h: norm.h };
            Some((None, Some(op.into())))
        }
        Lowered::NormPackQ8(norm) => {
            let Some((b, h)) = norm.sum else { return Some((None, None)) };
            let (place, op) = product_added(nodes, at, [norm.a, b], h, read_back)?;
            Some((Some(place), Some(op)))
        }
        Lowered::AddRmsNorm(AddRmsNorm { a, b, h, .. }) => Some(sum(nodes, at, [*a, *b], *h, read_back)),
        Lowered::PackQ8(_) | Lowered::Op(Op::RmsNorm(_)) => Some((None, None)),
        _ => None,
    }
}

/// The operation that makes h = a + b for the one at `at`, and the index of the operation that
/// moves there: a product with the sum after it, a norm with the sum after it, or a plain sum.
fn sum(
    nodes: &[Option<Node>],
    at: usize,
    [a, b]: [Tensor; 2],
    h: Tensor,
    read_back: &[Tensor],
) -> (Option<usize>, Option<Lowered>) {
    let normed = |y: Tensor, a: Tensor| match alone(nodes, at, y, read_back)? {
        (place, Lowered::Op(Op::RmsNorm(norm))) if norm.x.shape.dim.is_multiple_of(4) => {
            Some((place, NormAdd::new(a, norm, h).into()))
        }
        _ => None,
    };
    let found = product_added(nodes, at, [a, b], h, read_back).or_else(|| normed(b, a)).or_else(|| normed(a, b));
    found.map_or_else(
        || (None, Some(Lowered::Op(Add { a, b: Term::Tensor(b), y: h }.into()))),
        |(place, op)| (Some(place), Some(op)),
    )
}

/// The operation that computes h = a + b together with the product that makes a or b, and the index
/// of the product. `None` if no such product can move to `at`.
fn product_added(
    nodes: &[Option<Node>],
    at: usize,
    [a, b]: [Tensor; 2],
    h: Tensor,
    read_back: &[Tensor],
) -> Option<(usize, Lowered)> {
    let of = |y: Tensor, a: Tensor| match alone(nodes, at, y, read_back)? {
        (place, Lowered::Product(product))
            if matches!(product.operand, Operand::F32 | Operand::Q8) && product.bias.is_none() =>
        {
            Some((place, MatmulVecAdd { product: product.clone(), a, h }.into()))
        }
        _ => None,
    };
    of(b, a).or_else(|| of(a, b))
}

/// The operation that makes `y`, with its index, if only the operation at `at` reads `y`.
fn alone<'a>(nodes: &'a [Option<Node>], at: usize, y: Tensor, read_back: &[Tensor]) -> Option<(usize, &'a Lowered)> {
    let place = (0..at).find(|&place| {
        nodes[place].as_ref().is_some_and(|node| node.op.io().writes.iter().any(|made| made.id == y.id))
    })?;
    let alone = !read_back.iter().any(|t| t.id == y.id) && nodes.iter().filter(|node| reads(node, y)).count() == 1;
    alone.then_some((place, &nodes[place].as_ref()?.op))
}

#[cfg(test)]
mod tests {
    use crate::Recorder;
    use crate::caps::Caps;
    use crate::elementwise::add::add;
    use crate::elementwise::swiglu::swiglu;
    use crate::graph::tensor::{Counts, Lead, Shape, Tensor, Weight};
    use crate::matmul::matmul::matmul;
    use crate::norm::rms_norm::rms_norm;
    use crate::plan::{PlanOptions, Precision, plan};
    use gguf::GgmlType;

    const CAPS: Caps =
        Caps { max_storage_buffers: 16, max_workgroup: 512, max_workgroup_bytes: 32 << 10, ..Caps::WEBGPU };

    fn weight(id: u32, rows: u32, cols: u32) -> Weight {
        Weight::loaded(id, GgmlType::Q8_0, rows, cols)
    }

    /// The kernels of a fast plan of h = a + w b, with rows of `dim`, followed by what `then`
    /// records of its norm; h is read back if `kept`.
    fn kernels(caps: &Caps, dim: u32, kept: bool, then: impl Fn(&mut Recorder, Tensor) -> Tensor) -> Vec<&'static str> {
        let mut rec = Recorder::new(Counts { step: 1, out: 0 }, &[]);
        let [a, b] = [0, 1].map(|n| rec.host_input(n, Shape::new(Lead::Step, 1, dim)));
        let product = matmul(&mut rec, weight(0, dim, dim), b);
        let h = add(&mut rec, a, product);
        let x = rms_norm(&mut rec, h, None, 1e-6);
        let y = then(&mut rec, x);
        if kept {
            rec.output(h);
        }
        rec.output(y);
        let options = PlanOptions::plain().precision(Precision::Fast);
        plan(&rec, caps, &options).unwrap().dispatches.iter().map(|placed| placed.dispatch.variant.name).collect()
    }

    fn two(rec: &mut Recorder, x: Tensor) -> Tensor {
        let [a, b] = [1, 2].map(|n| matmul(rec, weight(n, 64, x.shape.dim), x));
        add(rec, a, b)
    }

    fn gated(rec: &mut Recorder, x: Tensor) -> Tensor {
        let [gate, up] = [1, 2].map(|n| matmul(rec, weight(n, 64, x.shape.dim), x));
        let y = swiglu(rec, gate, up);
        matmul(rec, weight(3, 64, 64), y)
    }

    #[test]
    fn readers_of_a_short_row_pack_it_and_what_makes_it_no_longer_does() {
        for kept in [false, true] {
            assert_eq!(kernels(&CAPS, 256, kept, two), ["pack_q8", "matmul_vec_q8", "norm_pack_matmul_vec", "add"]);
            assert_eq!(
                kernels(&CAPS, 256, kept, gated),
                ["pack_q8", "matmul_vec_q8", "norm_pack_matmul_vec_glu_silu", "matmul_vec_q8"]
            );
        }
    }

    #[test]
    fn a_lone_product_packs_a_row_without_a_norm() {
        let plan = |caps: &Caps, step: u32, dim: u32| {
            let mut rec = Recorder::new(Counts { step, out: 0 }, &[]);
            let h = rec.host_input(0, Shape::new(Lead::Step, step, dim));
            let y = matmul(&mut rec, weight(0, 64, dim), h);
            rec.output(y);
            let options = PlanOptions::plain().precision(Precision::Fast);
            plan(&rec, caps, &options).unwrap().dispatches[0].dispatch.variant.name
        };
        assert_eq!(plan(&CAPS, 1, 256), "norm_pack_matmul_vec");
        assert_eq!(plan(&CAPS, 1, 1536 + 256), "pack_q8");
        assert_eq!(plan(&CAPS, 2, 256), "pack_q8");
        assert_eq!(plan(&Caps { max_workgroup: 256, ..CAPS }, 1, 256), "pack_q8");
    }

    #[test]
    fn long_rows_small_workgroups_and_a_lone_product_leave_packing_where_it_was() {
        let lone = |rec: &mut Recorder, x: Tensor| matmul(rec, weight(1, 64, x.shape.dim), x);
        assert_eq!(kernels(&CAPS, 1536 + 256, true, two)[1], "matmul_vec_norm");
        assert_eq!(kernels(&CAPS, 1024 + 256, true, gated)[1], "matmul_vec_norm");
        assert_eq!(kernels(&CAPS, 256, true, lone)[1], "matmul_vec_norm");
        assert!(!kernels(&Caps { max_workgroup: 256, ..CAPS }, 256, true, two).contains(&"norm_pack_matmul_vec"));
    }
}
