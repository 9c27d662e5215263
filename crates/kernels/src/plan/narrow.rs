//! Gives products the operands that their rung of the ladder reads: in 8 bits, in f16, or
//! unchanged.

use crate::caps::Caps;
use crate::graph::record::{Origin, new_value as new};
use crate::graph::tensor::{Element, Shape, Tensor};
use crate::lower::matmul::ladder::{self, Problem, Rounding};
use crate::lower::matmul::matmul_tile64;
use crate::lower::matmul::product::{Operand, Product};
use crate::lower::pack::pack_f16::{PackF16, packed_shapes};
use crate::lower::pack::pack_q8::{PackQ8, packed_shape};
use crate::lower::{Lowered, Node};
use std::collections::HashMap;

/// Rounded copies of tensors that were made already.
#[derive(Default)]
struct Made {
    packed: HashMap<u32, Tensor>,
    halves: HashMap<u32, (Tensor, Tensor)>,
    slabs: HashMap<u32, (Tensor, Tensor)>,
}

/// Rewrites the products of `nodes`, and inserts the packing of an operand before its first
/// product. New values are added to `origins`.
pub fn narrow(nodes: Vec<Node>, origins: &mut Vec<(Origin, Shape)>, caps: &Caps) -> Vec<Node> {
    let mut made = Made::default();
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes {
        let Lowered::Product(product) = &node.op else {
            out.push(node);
            continue;
        };
        let (x, stage) = (product.x.flat(), node.stage);
        let op = match ladder::rung(problem(product), caps).rounding {
            Rounding::F32 => {
                out.push(node);
                continue;
            }
            Rounding::Q8 => {
                let packed = *made.packed.entry(x.id).or_insert_with(|| {
                    let packed = new(origins, Element::Q8, packed_shape(x.shape));
                    out.push(Node::of(PackQ8 { x, packed, norm: None }, stage));
                    packed
                });
                Product { x: packed, operand: Operand::Q8, ..product.clone() }
            }
            Rounding::F16 => {
                let (scales, halves) = *made.halves.entry(x.id).or_insert_with(|| {
                    let [of_scales, of_halves] = packed_shapes(x.shape);
                    let (scales, halves) = (new(origins, Element::F32, of_scales), new(origins, Element::F16, of_halves));
                    out.push(Node::of(PackF16 { x, scales, halves, slab: 0, scaled: true }, stage));
                    (scales, halves)
                });
                Product { x: halves, operand: Operand::F16 { scales }, ..product.clone() }
            }
            Rounding::Slabs => {
                let (scales, halves) = *made.slabs.entry(x.id).or_insert_with(|| {
                    let scales = new(origins, Element::F32, packed_shapes(x.shape)[0]);
                    let (shape, slab) = matmul_tile64::slabs(x.shape);
                    let halves = new(origins, Element::F16, shape);
                    out.push(Node::of(PackF16 { x, scales, halves, slab, scaled: true }, stage));
                    (scales, halves)
                });
                Product { x: halves, operand: Operand::Slabs { scales }, ..product.clone() }
            }
        };
        out.push(Node::of(op, stage));
    }
    out
}

/// The problem for the ladder. A product whose operand is packed already is not rounded again.
fn problem(product: &Product) -> Problem {
    Problem { w: product.w, rows: product.x.shape.rows, rounds: !product.exact && product.operand == Operand::F32 }
}
