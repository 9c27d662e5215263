//! Gives products narrower activations where the device is faster with them: f16 through cooperative matrices, else 8 bits for a few rows.

use crate::device::Caps;
use crate::ops::matmul::{Matmul, Operand};
use crate::ops::pack_f16::{PackF16, packed_shapes};
use crate::ops::pack_q8::{PackQ8, packed_shape};
use crate::ops::{Op, matmul_coop, matmul_few, matmul_vec_q8};
use crate::record::{Node, Origin};
use crate::tensor::{Shape, Tensor};
use std::collections::HashMap;

/// Rows from which tiles of cooperative matrices are filled well enough.
const COOP_ROWS: u32 = 16;

/// Values made beside a tensor for its narrower readers.
#[derive(Default)]
struct Made {
    packed: HashMap<u32, Tensor>,
    halves: HashMap<u32, (Tensor, Tensor)>,
    slabs: HashMap<u32, (Tensor, Tensor)>,
}

/// Rewrites the products of `nodes` and puts what they then read before the first of them; new values get a place in `origins`.
pub fn narrow(nodes: Vec<Node>, origins: &mut Vec<(Origin, Shape)>, caps: &Caps) -> Vec<Node> {
    let mut made = Made::default();
    let mut out = Vec::with_capacity(nodes.len());
    let mut new = |shape: Shape| {
        origins.push((Origin::Made, shape));
        Tensor { id: origins.len() as u32 - 1, shape }
    };
    for node in nodes {
        let Op::Matmul(product) = &node.op else {
            out.push(node);
            continue;
        };
        let (x, layer) = (product.x.flat(), node.layer);
        let op = match wanted(product, caps) {
            Wanted::F32 => node.op,
            Wanted::Q8 => {
                let packed = *made.packed.entry(x.id).or_insert_with(|| {
                    let packed = new(packed_shape(x.shape));
                    out.push(Node { op: PackQ8 { x, packed }.into(), layer });
                    packed
                });
                Matmul { x: packed, operand: Operand::Q8, ..product.clone() }.into()
            }
            Wanted::F16 => {
                let (scales, halves) = *made.halves.entry(x.id).or_insert_with(|| {
                    let [scales, halves] = packed_shapes(x.shape).map(&mut new);
                    out.push(Node { op: PackF16 { x, scales, halves, slab: 0, scaled: true }.into(), layer });
                    (scales, halves)
                });
                Matmul { x: halves, operand: Operand::F16 { scales }, ..product.clone() }.into()
            }
            Wanted::Slabs => {
                let (scales, halves) = *made.slabs.entry(x.id).or_insert_with(|| {
                    let scales = new(packed_shapes(x.shape)[0]);
                    let (shape, slab) = matmul_few::slabs(x.shape);
                    let halves = new(shape);
                    out.push(Node { op: PackF16 { x, scales, halves, slab, scaled: true }.into(), layer });
                    (scales, halves)
                });
                Matmul { x: halves, operand: Operand::Slabs { scales }, ..product.clone() }.into()
            }
        };
        out.push(Node { op, layer });
    }
    out
}

enum Wanted {
    F32,
    Q8,
    F16,
    Slabs,
}

fn wanted(product: &Matmul, caps: &Caps) -> Wanted {
    let rows = product.x.shape.rows;
    match product.operand {
        _ if product.exact => Wanted::F32,
        Operand::F32 if rows <= caps.table.q8_rows && matmul_vec_q8::serves(product.w) => Wanted::Q8,
        Operand::F32 if caps.cooperative && rows <= caps.table.few_rows && matmul_few::serves(product.w) => Wanted::Slabs,
        Operand::F32 if rows >= COOP_ROWS && caps.cooperative && matmul_coop::serves(product.w) => Wanted::F16,
        _ => Wanted::F32,
    }
}
