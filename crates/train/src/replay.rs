//! Records operations again with fresh values: layers whose values were not kept, and the head of a
//! model for some of the rows at a time.

use kernels::ops::Op;
use kernels::{Node, Operation as _, Recorder, Shape, Tensor};
use std::collections::HashMap;

/// Appends `nodes` again. Values in `map` are replaced; every value that the nodes make gets a
/// fresh one with the shape that `shape` gives, and is added to `map`. Returns the new nodes.
pub fn replay(
    rec: &mut Recorder,
    nodes: &[Node<Op>],
    map: &mut HashMap<u32, Tensor>,
    shape: impl Fn(Shape) -> Shape,
) -> Vec<Node<Op>> {
    let again = |node: &Node<Op>| {
        for made in node.op.io().writes {
            map.entry(made.id()).or_insert_with(|| rec.make_of(made.element, shape(made.shape)));
        }
        let mut op = node.op.clone();
        op.values(&mut |t| {
            if let Some(new) = map.get(&t.id()) {
                *t = new.heads(t.shape.heads);
            }
        });
        rec.layer(node.stage.layer);
        rec.push(op.clone());
        Node { op, stage: node.stage }
    };
    nodes.iter().map(again).collect()
}
