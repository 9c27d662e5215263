//! Merges the producer of a row into the product of one row that reads it. Every workgroup of the
//! product then does what one workgroup of a separate kernel did.

use super::rules::{Direction, RULES};
use crate::caps::Caps;
use crate::graph::operation::Operation;
use crate::graph::tensor::Tensor;
use crate::language::{Lowered, Node};

/// Applies the rules once, front to back. An operation that moves to its consumer must have no
/// other results that are read before that consumer.
pub fn consumers(nodes: Vec<Node>, caps: &Caps) -> Vec<Node> {
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    for at in 0..nodes.len() {
        let Some((consumer, op)) = replaced(&nodes, at, caps) else { continue };
        let before = nodes[at].take().map_or_else(Vec::new, |producer| producer.parts);
        if let Some(node) = &mut nodes[consumer] {
            node.op = op;
            node.parts.splice(0..0, before);
        }
    }
    nodes.into_iter().flatten().collect()
}

/// The index of the only consumer of the packed result of the operation at `at`, and the operation
/// that replaces it.
fn replaced(nodes: &[Option<Node>], at: usize, caps: &Caps) -> Option<(usize, Lowered)> {
    let producer = &nodes[at].as_ref()?.op;
    let packed = match producer {
        Lowered::NormAdd(sum) => sum.packed?.to.q8()?,
        Lowered::GluPackQ8(glu) => glu.packed,
        Lowered::AttentionDecode(decode) => decode.merge.y,
        _ => return None,
    };
    let reads = |node: &Option<Node>, t: Tensor| {
        node.as_ref().is_some_and(|node| node.op.io().reads.iter().any(|read| read.id == t.id))
    };
    let mut consumers = (at + 1..nodes.len()).filter(|&later| reads(&nodes[later], packed));
    let (consumer, None) = (consumers.next()?, consumers.next()) else { return None };
    let between = &nodes[at + 1..consumer];
    // An attention also writes its states, and the operations between may read them without listing
    // them. So nothing may be between.
    if matches!(producer, Lowered::AttentionDecode(_)) && between.iter().any(Option::is_some) {
        return None;
    }
    if producer.io().writes.iter().any(|&made| between.iter().any(|node| reads(node, made))) {
        return None;
    }
    let op = &nodes[consumer].as_ref()?.op;
    let found = RULES
        .iter()
        .find_map(|rule| if let Direction::Consumer(of) = rule.direction { of(producer, op, caps) } else { None })?;
    Some((consumer, found))
}

#[cfg(test)]
mod tests {
    use crate::Recorder;
    use crate::caps::Caps;
    use crate::elementwise::add::add;
    use crate::elementwise::scale::scale;
    use crate::graph::tensor::{Counts, Lead, Shape, Tensor, Weight};
    use crate::matmul::matmul::matmul;
    use crate::norm::rms_norm::rms_norm;
    use crate::plan::{PlanOptions, Precision, plan};
    use gguf::GgmlType;

    const CAPS: Caps = Caps { max_storage_buffers: 16, ..Caps::WEBGPU };

    /// The kernels of a fast plan of h = a + norm(b), with rows of `dim`, followed by what `then`
    /// records of h.
    fn kernels(caps: &Caps, rows: u32, dim: u32, then: impl Fn(&mut Recorder, Tensor) -> Tensor) -> Vec<&'static str> {
        let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[]);
        let [a, b] = [0, 1].map(|n| rec.host_input(n, Shape::new(Lead::Step, rows, dim)));
        let b = rms_norm(&mut rec, b, None, 1e-6);
        let h = add(&mut rec, a, b);
        let y = then(&mut rec, h);
        rec.output(h);
        rec.output(y);
        let options = PlanOptions::plain().precision(Precision::Fast);
        plan(&rec, caps, &options).unwrap().dispatches.iter().map(|placed| placed.dispatch.variant.name).collect()
    }

    fn weight(id: u32, rows: u32, cols: u32) -> Weight {
        Weight::loaded(id, GgmlType::Q8_0, rows, cols)
    }

    fn products(rec: &mut Recorder, h: Tensor) -> Tensor {
        let x = rms_norm(rec, h, None, 1e-6);
        let [a, b] = [0, 1].map(|n| matmul(rec, weight(n, 64, h.shape.dim), x));
        add(rec, a, b)
    }

    #[test]
    fn products_of_one_row_make_it() {
        assert_eq!(kernels(&CAPS, 1, 256, products), ["norm_add_matmul_vec", "add"]);
    }

    #[test]
    fn two_rows_rows_longer_than_a_workgroup_holds_and_few_bindings_stay_apart() {
        assert_eq!(kernels(&CAPS, 2, 256, products)[0], "norm_add_q8");
        assert_eq!(kernels(&CAPS, 1, 2560 + 256, products)[0], "norm_add_q8");
        assert_eq!(kernels(&Caps::WEBGPU, 1, 256, products)[0], "norm_add_q8");
    }

    #[test]
    fn a_sum_that_is_read_before_the_product_stays_where_it_is() {
        let early = |rec: &mut Recorder, h: Tensor| {
            let x = rms_norm(rec, h, None, 1e-6);
            let before = scale(rec, h, 2.0);
            let y = matmul(rec, weight(0, 256, 256), x);
            add(rec, y, before)
        };
        assert_eq!(kernels(&CAPS, 1, 256, early), ["norm_add_q8", "scale", "matmul_vec_q8", "add"]);
    }
}
