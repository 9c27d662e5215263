//! Lets products of one short normed row pack it themselves: what made it is then a product and a sum, in as many workgroups as it likes, since a
//! block of 32 packed elements no longer wants one of its own.

use crate::device::Caps;
use crate::ops::matmul::{Matmul, Operand};
use crate::ops::matmul_vec_q8::MatmulVecAdd;
use crate::ops::norm_pack_matmul_vec::{self, Normed};
use crate::ops::{Op, Operation, norm_pack_matmul_vec_glu};
use crate::record::Node;
use crate::tensor::Tensor;

/// Applies it to every packed row whose only reader can.
pub fn pack(nodes: Vec<Node>, read_back: &[Tensor], caps: &Caps) -> Vec<Node> {
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    for at in 0..nodes.len() {
        let Some((reader, op)) = reader(&nodes, at, caps) else { continue };
        let Some((of, maker)) = maker(&nodes, at, read_back) else { continue };
        if let Some(of) = of {
            nodes[of] = None;
        }
        match (&mut nodes[at], maker) {
            (Some(node), Some(maker)) => node.op = maker,
            (slot, _) => *slot = None,
        }
        if let Some(node) = &mut nodes[reader] {
            node.op = op;
        }
    }
    nodes.into_iter().flatten().collect()
}

fn reads(node: &Option<Node>, t: Tensor) -> bool {
    node.as_ref().is_some_and(|node| node.op.io().reads.iter().any(|read| read.id == t.id))
}

/// The place of the only reader of the row that the operation at `at` packs, and what it becomes when it packs it.
fn reader(nodes: &[Option<Node>], at: usize, caps: &Caps) -> Option<(usize, Op)> {
    let (row, packed) = match &nodes[at].as_ref()?.op {
        Op::MatmulVecNorm(norm) => (Normed { h: norm.h, u: norm.u, eps: Some(norm.eps) }, norm.packed),
        Op::NormPackQ8(norm) => (Normed { h: norm.sum.map_or(norm.a, |(_, h)| h), u: norm.w, eps: Some(norm.eps) }, norm.packed),
        Op::PackQ8(pack) => (Normed { h: pack.x, u: None, eps: None }, pack.packed),
        _ => return None,
    };
    let mut readers = (at + 1..nodes.len()).filter(|&later| reads(&nodes[later], packed));
    let (reader, None) = (readers.next()?, readers.next()) else { return None };
    let op = match &nodes[reader].as_ref()?.op {
        Op::MatmulGlu(glu) => norm_pack_matmul_vec_glu::packing(&row, glu, caps),
        op => norm_pack_matmul_vec::packing(&row, op, caps),
    };
    Some((reader, op?))
}

/// What is left of the operation at `at` when it no longer packs, if anything, and the place of the product that moves there.
fn maker(nodes: &[Option<Node>], at: usize, read_back: &[Tensor]) -> Option<(Option<usize>, Option<Op>)> {
    match &nodes[at].as_ref()?.op {
        Op::MatmulVecNorm(norm) => {
            let op = MatmulVecAdd { product: norm.product.clone(), a: norm.a, h: norm.h };
            Some((None, Some(op.into())))
        }
        Op::NormPackQ8(norm) => {
            let Some((b, h)) = norm.sum else { return Some((None, None)) };
            let of = |y: Tensor, a: Tensor| {
                let (place, product) = product(nodes, at, y, read_back)?;
                Some((Some(place), Some(MatmulVecAdd { product, a, h }.into())))
            };
            of(b, norm.a).or_else(|| of(norm.a, b))
        }
        Op::PackQ8(_) => Some((None, None)),
        _ => None,
    }
}

/// The product that makes `y` for the operation at `at` alone.
fn product(nodes: &[Option<Node>], at: usize, y: Tensor, read_back: &[Tensor]) -> Option<(usize, Matmul)> {
    let place = (0..at).find(|&place| nodes[place].as_ref().is_some_and(|node| node.op.io().writes.iter().any(|made| made.id == y.id)))?;
    let Op::Matmul(product) = &nodes[place].as_ref()?.op else { return None };
    let alone = !read_back.iter().any(|t| t.id == y.id) && nodes.iter().filter(|node| reads(node, y)).count() == 1;
    (alone && product.operand == Operand::Q8 && product.bias.is_none()).then(|| (place, product.clone()))
}

#[cfg(test)]
mod tests {
    use crate::device::Caps;
    use crate::ops::{add, matmul, rms_norm, swiglu};
    use crate::plan::{PlanOptions, plan};
    use crate::record::Recorder;
    use crate::tensor::{Counts, Lead, Shape, Tensor, Weight};
    use gguf::GgmlType;

    const CAPS: Caps = Caps { max_storage_buffers: 16, max_workgroup: 512, max_workgroup_bytes: 32 << 10, ..Caps::WEBGPU };

    fn weight(id: u32, rows: u32, cols: u32) -> Weight {
        Weight { id, ty: GgmlType::Q8_0, rows, cols }
    }

    /// The rows of a fast plan of h = a + w b, of rows of `dim`, and what `then` records of its norm; h is read back if `kept`.
    fn rows(caps: &Caps, dim: u32, kept: bool, then: impl Fn(&mut Recorder, Tensor) -> Tensor) -> Vec<&'static str> {
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
        let options = PlanOptions { fast: true, ..PlanOptions::default() };
        plan(&rec, caps, &options).unwrap().steps.iter().map(|step| step.dispatch.row.name).collect()
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
            assert_eq!(rows(&CAPS, 256, kept, two), ["pack_q8", "matmul_vec_q8", "norm_pack_matmul_vec", "add"]);
            assert_eq!(rows(&CAPS, 256, kept, gated), ["pack_q8", "matmul_vec_q8", "norm_pack_matmul_vec_glu_silu", "matmul_vec_q8"]);
        }
    }

    #[test]
    fn a_lone_product_packs_a_row_without_a_norm() {
        let plan = |caps: &Caps, step: u32, dim: u32| {
            let mut rec = Recorder::new(Counts { step, out: 0 }, &[]);
            let h = rec.host_input(0, Shape::new(Lead::Step, step, dim));
            let y = matmul(&mut rec, weight(0, 64, dim), h);
            rec.output(y);
            let options = PlanOptions { fast: true, ..PlanOptions::default() };
            plan(&rec, caps, &options).unwrap().steps[0].dispatch.row.name
        };
        assert_eq!(plan(&CAPS, 1, 256), "norm_pack_matmul_vec");
        assert_eq!(plan(&CAPS, 1, 1536 + 256), "pack_q8");
        assert_eq!(plan(&CAPS, 2, 256), "pack_q8");
        assert_eq!(plan(&Caps { max_workgroup: 256, ..CAPS }, 1, 256), "pack_q8");
    }

    #[test]
    fn long_rows_small_workgroups_and_a_lone_product_leave_packing_where_it_was() {
        let lone = |rec: &mut Recorder, x: Tensor| matmul(rec, weight(1, 64, x.shape.dim), x);
        assert_eq!(rows(&CAPS, 1536 + 256, true, two)[1], "matmul_vec_norm");
        assert_eq!(rows(&CAPS, 1024 + 256, true, gated)[1], "matmul_vec_norm");
        assert_eq!(rows(&CAPS, 256, true, lone)[1], "matmul_vec_norm");
        assert!(!rows(&Caps { max_workgroup: 256, ..CAPS }, 256, true, two).contains(&"norm_pack_matmul_vec"));
    }
}
