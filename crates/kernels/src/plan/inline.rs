//! Lets a product of one row make the row that it reads: all of its workgroups do what one did in a kernel before them.

use crate::device::Caps;
use crate::ops::{Op, Operation, glu_matmul_vec, merge_matmul_vec, norm_add_matmul_vec, norm_add_matmul_vec_glu};
use crate::record::Node;
use crate::tensor::Tensor;

/// A rule: the operation that the only reader of what `maker` packs becomes with it.
type Rule = fn(maker: &Op, reader: &Op, caps: &Caps) -> Option<Op>;

const RULES: &[Rule] = &[norm_add_matmul_vec::inline, norm_add_matmul_vec_glu::inline, glu_matmul_vec::inline, merge_matmul_vec::inline];

/// Applies the rules once, front to back. What an operation makes beside must have no reader before it moves to.
pub fn inline(nodes: Vec<Node>, caps: &Caps) -> Vec<Node> {
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    for at in 0..nodes.len() {
        let Some((reader, op)) = replaced(&nodes, at, caps) else { continue };
        nodes[at] = None;
        if let Some(node) = &mut nodes[reader] {
            node.op = op;
        }
    }
    nodes.into_iter().flatten().collect()
}

/// The place of the only reader of what the operation at `at` packs, and what it becomes.
fn replaced(nodes: &[Option<Node>], at: usize, caps: &Caps) -> Option<(usize, Op)> {
    let maker = &nodes[at].as_ref()?.op;
    let packed = match maker {
        Op::NormAdd(sum) => sum.packed?.to,
        Op::GluPackQ8(glu) => glu.packed,
        Op::AttentionShort(short) => short.merge.y,
        _ => return None,
    };
    let reads = |node: &Option<Node>, t: Tensor| node.as_ref().is_some_and(|node| node.op.io().reads.iter().any(|read| read.id == t.id));
    let mut readers = (at + 1..nodes.len()).filter(|&later| reads(&nodes[later], packed));
    let (reader, None) = (readers.next()?, readers.next()) else { return None };
    let between = &nodes[at + 1..reader];
    // Nothing says what else touches an attention's states.
    if matches!(maker, Op::AttentionShort(_)) && between.iter().any(Option::is_some) {
        return None;
    }
    if maker.io().writes.iter().any(|&made| between.iter().any(|node| reads(node, made))) {
        return None;
    }
    let op = &nodes[reader].as_ref()?.op;
    let found = RULES.iter().find_map(|rule| rule(maker, op, caps))?;
    Some((reader, found))
}

#[cfg(test)]
mod tests {
    use crate::device::Caps;
    use crate::ops::{add, matmul, rms_norm, scale};
    use crate::plan::{PlanOptions, plan};
    use crate::record::Recorder;
    use crate::tensor::{Counts, Lead, Shape, Tensor, Weight};
    use gguf::GgmlType;

    const CAPS: Caps = Caps { max_storage_buffers: 16, ..Caps::WEBGPU };

    /// The rows of a fast plan of h = a + norm(b), of rows of `dim`, and what `then` records of it.
    fn rows(caps: &Caps, rows: u32, dim: u32, then: impl Fn(&mut Recorder, Tensor) -> Tensor) -> Vec<&'static str> {
        let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[]);
        let [a, b] = [0, 1].map(|n| rec.host_input(n, Shape::new(Lead::Step, rows, dim)));
        let b = rms_norm(&mut rec, b, None, 1e-6);
        let h = add(&mut rec, a, b);
        let y = then(&mut rec, h);
        rec.output(h);
        rec.output(y);
        let options = PlanOptions { fast: true, ..PlanOptions::default() };
        plan(&rec, caps, &options).unwrap().steps.iter().map(|step| step.dispatch.row.name).collect()
    }

    fn weight(id: u32, rows: u32, cols: u32) -> Weight {
        Weight { id, ty: GgmlType::Q8_0, rows, cols }
    }

    fn products(rec: &mut Recorder, h: Tensor) -> Tensor {
        let x = rms_norm(rec, h, None, 1e-6);
        let [a, b] = [0, 1].map(|n| matmul(rec, weight(n, 64, h.shape.dim), x));
        add(rec, a, b)
    }

    #[test]
    fn products_of_one_row_make_it() {
        assert_eq!(rows(&CAPS, 1, 256, products), ["norm_add_matmul_vec", "add"]);
    }

    #[test]
    fn two_rows_rows_longer_than_a_workgroup_holds_and_few_bindings_stay_apart() {
        assert_eq!(rows(&CAPS, 2, 256, products)[0], "norm_add_q8");
        assert_eq!(rows(&CAPS, 1, 2560 + 256, products)[0], "norm_add_q8");
        assert_eq!(rows(&Caps::WEBGPU, 1, 256, products)[0], "norm_add_q8");
    }

    #[test]
    fn a_sum_that_is_read_before_the_product_stays_where_it_is() {
        let early = |rec: &mut Recorder, h: Tensor| {
            let x = rms_norm(rec, h, None, 1e-6);
            let before = scale(rec, h, 2.0);
            let y = matmul(rec, weight(0, 256, 256), x);
            add(rec, y, before)
        };
        assert_eq!(rows(&CAPS, 1, 256, early), ["norm_add_q8", "scale", "matmul_vec_q8", "add"]);
    }
}
