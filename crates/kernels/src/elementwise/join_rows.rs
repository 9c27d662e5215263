//! Joins the parts of a tensor that were computed part by part.

use super::scale;
use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Lead, Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Lower, Lowering};

/// y = the rows of all parts, one part after the other.
#[derive(Clone, Debug)]
pub struct JoinRows {
    pub parts: Vec<Tensor>,
    pub y: Tensor,
}

parameters! { JoinRows }

/// Joins `parts`, each of the rows that [`Tensor::rows_from`] gives from its own first row on, to
/// one tensor of all requested rows; returns [Out, D], f32.
pub fn join_rows(rec: &mut Recorder<impl From<JoinRows>>, parts: Vec<Tensor>) -> Tensor {
    let rows = rec.capacity().out;
    let mut next = 0;
    for part in &parts {
        let shape = part.shape;
        assert!(
            shape.lead == Lead::OutFrom(next) && shape.width() == parts[0].shape.width(),
            "join_rows: {shape:?} at row {next}"
        );
        next += shape.rows;
    }
    assert_eq!(next, rows, "join_rows: the parts hold all rows");
    let y = rec.make(Shape::new(Lead::Out, rows, parts[0].shape.width()));
    rec.push(JoinRows { parts, y });
    y
}

impl Operation for JoinRows {
    fn io(&self) -> Io {
        Io { reads: self.parts.clone(), writes: vec![self.y] }
    }
}

impl Lowering for JoinRows {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let copy = |part: &Tensor| {
            let Lead::OutFrom(first) = part.shape.lead else { unreachable!("parts of requested rows") };
            scale::dispatch(*part, 1.0, self.y.rows_from(first, part.shape.rows))
        };
        self.parts.iter().map(copy).collect()
    }
}

impl Reference for JoinRows {
    fn reference(&self, host: &mut Host<'_>) {
        let y = self.parts.iter().flat_map(|part| host.f32(*part).iter().copied()).collect();
        host.put(self.y, y);
    }
}
