//! Gives products, and their derivatives by the rows, the operands that their kernels read: in 8
//! bits, in f16, or unchanged.

use crate::attention::attention_backward_kv::AttentionBackwardKv;
use crate::attention::attention_backward_q::AttentionBackwardQ;
use crate::attention::attention_lse::Attended;
use crate::attention::tile32::Tile32;
use crate::attention::{attention_backward_kv_flash, attention_backward_q_flash, attention_lse_flash};
use crate::caps::Caps;
use crate::experts::matmul_experts::MatmulExperts;
use crate::experts::matmul_tile64_experts::{self, MatmulTile64Experts};
use crate::experts::matmul_vec_q8_experts::{self, MatmulVecQ8Experts};
use crate::experts::route::Routes;
use crate::graph::operation::Operation;
use crate::graph::record::{Origin, Stage, new_value as new};
use crate::graph::tensor::{Element, Shape, Tensor};
use crate::language::{Backward, Lowered, Node, Op};
use crate::matmul::ladder;
use crate::matmul::matmul_input_tile128::{self, MatmulInputTile128};
use crate::matmul::matmul_tile64;
use crate::matmul::matmul_weight_tile128::{self, MatmulWeightTile128};
use crate::matmul::problem::{Problem, Rounding, Rounds};
use crate::matmul::product::{Operand, Product};
use crate::norm::gather_slots::{GatherSlots, gathered_shapes};
use crate::norm::pack_f16::{PackF16, packed_shapes};
use crate::norm::pack_q8::{PackQ8, packed_shape};
use crate::plan::PlanOptions;
use std::collections::HashMap;

/// Rounded copies of tensors that were made already, by value and first row.
#[derive(Default)]
struct Made {
    packed: HashMap<(u32, u32), Tensor>,
    halves: HashMap<(u32, u32), (Tensor, Tensor)>,
    slabs: HashMap<(u32, u32), (Tensor, Tensor)>,
    gathered: HashMap<(u32, u32, u32), (Tensor, Tensor)>,
}

impl Made {
    /// `x` in 8 bits, which is made here unless it exists.
    fn packed(&mut self, x: Tensor, stage: Stage, origins: &mut Vec<(Origin, Shape)>, out: &mut Vec<Node>) -> Tensor {
        *self.packed.entry((x.id, x.first)).or_insert_with(|| {
            let packed = new(origins, Element::Q8, packed_shape(x.shape));
            out.push(Node::of(PackQ8 { x, packed, norm: None }, stage));
            packed
        })
    }

    /// The scales and the halves of `x`, which are made here unless they exist.
    fn halves(
        &mut self,
        x: Tensor,
        stage: Stage,
        origins: &mut Vec<(Origin, Shape)>,
        out: &mut Vec<Node>,
    ) -> (Tensor, Tensor) {
        *self.halves.entry((x.id, x.first)).or_insert_with(|| {
            let [of_scales, of_halves] = packed_shapes(x.shape);
            let (scales, halves) = (new(origins, Element::F32, of_scales), new(origins, Element::F16, of_halves));
            out.push(Node::of(PackF16 { x, scales, halves, slab: 0, scaled: true }, stage));
            (scales, halves)
        })
    }

    /// The scales of `x` and its halves in slabs, which are made here unless they exist.
    fn slabs(
        &mut self,
        x: Tensor,
        stage: Stage,
        origins: &mut Vec<(Origin, Shape)>,
        out: &mut Vec<Node>,
    ) -> (Tensor, Tensor) {
        *self.slabs.entry((x.id, x.first)).or_insert_with(|| {
            let scales = new(origins, Element::F32, packed_shapes(x.shape)[0]);
            let (shape, slab) = matmul_tile64::slabs(x.shape);
            let halves = new(origins, Element::F16, shape);
            out.push(Node::of(PackF16 { x, scales, halves, slab, scaled: true }, stage));
            (scales, halves)
        })
    }

    /// The scales and the halves of the rows of a product of experts, in the order of its slots.
    fn gathered(
        &mut self,
        op: &MatmulExperts,
        stage: Stage,
        origins: &mut Vec<(Origin, Shape)>,
        out: &mut Vec<Node>,
    ) -> (Tensor, Tensor) {
        let (x, slots) = (op.x.flat(), op.routes.groups.expect("a product with groups").slots);
        let (x_scales, packed) = self.halves(x, stage, origins, out);
        *self.gathered.entry((x.id, x.first, slots.id)).or_insert_with(|| {
            let [of_scales, of_halves] = gathered_shapes(slots.shape, op.w.cols);
            let (scales, halves) = (new(origins, Element::F32, of_scales), new(origins, Element::F16, of_halves));
            out.push(Node::of(
                GatherSlots { x: packed, x_scales, heads: op.x.shape.heads, slots, scales, halves },
                stage,
            ));
            (scales, halves)
        })
    }
}

/// Cuts the slots of experts into small tiles, where every reader of the tiles takes packed rows.
fn cut(nodes: &mut [Node], origins: &mut Vec<(Origin, Shape)>, options: &PlanOptions, caps: &Caps) {
    let mut readers: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Lowered::Op(Op::GroupExperts(group)) = &node.op {
            readers.insert(group.groups.tiles.id, vec![]);
        } else if !readers.is_empty() {
            for t in node.op.io().reads {
                readers.entry(t.id).and_modify(|of| of.push(at));
            }
        }
    }
    for at in 0..nodes.len() {
        let Lowered::Op(Op::GroupExperts(group)) = &nodes[at].op else { continue };
        let readers = &readers[&group.groups.tiles.id];
        let product = |at: &usize| match &nodes[*at].op {
            Lowered::Op(Op::MatmulExperts(op))
                if matmul_vec_q8_experts::serves(op, options.rounds(), options.sequences, caps) =>
            {
                Some((*at, op.clone()))
            }
            _ => None,
        };
        let Some(products) = readers.iter().map(product).collect::<Option<Vec<_>>>() else { continue };
        let group = group.in_small_tiles(|shape| new(origins, Element::U32, shape));
        for (at, op) in products {
            let routes = Routes { groups: Some(group.groups), ..op.routes };
            nodes[at] = Node::of(MatmulExperts { routes, ..op }, nodes[at].stage);
        }
        nodes[at] = Node::of(group, nodes[at].stage);
    }
}

/// Rewrites the products of `nodes` and their derivatives, and inserts the packing of an operand
/// before its first reader. New values are added to `origins`.
pub fn narrow(
    mut nodes: Vec<Node>,
    origins: &mut Vec<(Origin, Shape)>,
    options: &PlanOptions,
    caps: &Caps,
) -> Vec<Node> {
    cut(&mut nodes, origins, options, caps);
    let rounds = options.rounds();
    let mut made = Made::default();
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes {
        let stage = node.stage;
        let product = match &node.op {
            Lowered::Product(product) => product,
            Lowered::Op(Op::Backward(Backward::MatmulInput(op))) if matmul_input_tile128::serves(op, caps) => {
                let (scales, dy) = made.halves(op.dy.flat(), stage, origins, &mut out);
                out.push(Node::of(MatmulInputTile128 { w: op.w, dy, scales, dx: op.dx }, stage));
                continue;
            }
            Lowered::Op(Op::Backward(Backward::MatmulWeight(op))) if matmul_weight_tile128::serves(op, caps) => {
                let (dy_scales, dy) = made.halves(op.dy.flat(), stage, origins, &mut out);
                let x = op.x.flat();
                let (x_slab, (x_scales, x)) = match made.slabs.get(&(x.id, x.first)) {
                    Some(&made) => (made.1.shape.rows, made),
                    None => (0, made.halves(x, stage, origins, &mut out)),
                };
                out.push(Node::of(
                    MatmulWeightTile128 { dy, dy_scales, x, x_slab, x_scales, step_rows: op.step_rows, g: op.g },
                    stage,
                ));
                continue;
            }
            Lowered::Op(Op::MatmulExperts(op))
                if matmul_vec_q8_experts::serves(op, options.rounds(), options.sequences, caps) =>
            {
                let packed = made.packed(op.x.flat(), stage, origins, &mut out);
                out.push(Node::of(MatmulVecQ8Experts { of: op.clone(), packed }, stage));
                continue;
            }
            Lowered::Op(Op::MatmulExperts(op)) if matmul_tile64_experts::serves(op, rounds, caps) => {
                let (scales, halves) = made.gathered(op, stage, origins, &mut out);
                out.push(Node::of(MatmulTile64Experts { of: op.clone(), scales, halves }, stage));
                continue;
            }
            Lowered::Op(Op::Backward(op)) => {
                let tiled = tiled(op, caps, |dy| made.halves(dy, stage, origins, &mut out));
                out.push(tiled.map_or(node, |tiled| Node::of(tiled, stage)));
                continue;
            }
            _ => {
                out.push(node);
                continue;
            }
        };
        let x = product.x.flat();
        let op = match ladder::rung(problem(product, rounds, options.fast()), caps).rounding {
            Rounding::F32 => {
                out.push(node);
                continue;
            }
            Rounding::Q8 => {
                let packed = made.packed(x, stage, origins, &mut out);
                Product { x: packed, operand: Operand::Q8, ..product.clone() }
            }
            Rounding::F16 => {
                let (scales, halves) = made.slabs(x, stage, origins, &mut out);
                Product { x: halves, operand: Operand::F16 { scales }, ..product.clone() }
            }
            Rounding::Slabs => {
                let (scales, halves) = made.slabs(x, stage, origins, &mut out);
                Product { x: halves, operand: Operand::Slabs { scales }, ..product.clone() }
            }
        };
        out.push(Node::of(op, stage));
    }
    out
}

/// The problem for the ladder. A product whose operand is packed already is not rounded again.
fn problem(product: &Product, rounds: Rounds, free: bool) -> Problem {
    let rounds = if product.exact || product.operand != Operand::F32 { Rounds::Never } else { rounds };
    Problem { w: product.w, rows: product.x.shape.rows, rounds, free, bias: product.bias.is_some() }
}

/// The operation in tiles, if a kernel takes it on this device. `pack` gives the scales and the
/// halves of a value.
fn tiled(op: &Backward, caps: &Caps, mut pack: impl FnMut(Tensor) -> (Tensor, Tensor)) -> Option<Tile32> {
    Some(match op {
        Backward::AttentionLse(op) => attention_lse_flash::variant(&op.of, caps).map(|_| Tile32::Lse(op.clone()))?,
        Backward::AttentionBackwardQ(op) => {
            attention_backward_q_flash::variant(&op.of, caps)?;
            let [(v_scales, v), (dy_scales, dy)] = [op.of.v, op.dy].map(|t| pack(t.flat()));
            Tile32::Q {
                op: AttentionBackwardQ { of: Attended { v, ..op.of }, dy, ..op.clone() },
                scales: [v_scales, dy_scales],
            }
        }
        Backward::AttentionBackwardKv(op) => {
            attention_backward_kv_flash::variant(&op.of, caps)?;
            let [(v_scales, v), (dy_scales, dy)] = [op.of.v, op.dy].map(|t| pack(t.flat()));
            Tile32::Kv {
                op: AttentionBackwardKv { of: Attended { v, ..op.of }, dy, ..op.clone() },
                scales: [v_scales, dy_scales],
            }
        }
        _ => return None,
    })
}
