//! Joins columns of a tensor that were computed one by one.

use crate::graph::host::Host;
use crate::graph::operation::{Io, Operation, Reference};
use crate::graph::record::Recorder;
use crate::graph::tensor::{Shape, Tensor};
use crate::kernel::dispatch::{Dispatch, Grid, Lower, Lowering};

kernel! {
    JOIN_COLUMNS: "join_columns",
    wgsl: ["elementwise/join_columns.wgsl", "shared/grid.wgsl"],
    params: Params { n: u32, dim: u32, wide: u32, start: u32 },
    bindings: Bind { x: Read, y: Write },
    cpu: cpu_ref::join_columns,
    nmse: 1e-12,
    needs: { threads: 256, workgroup_bytes: 0 },
}

/// y = the columns of all parts, one part after the other.
#[derive(Clone, Debug)]
pub struct JoinColumns {
    pub parts: Vec<Tensor>,
    pub y: Tensor,
}

parameters! { JoinColumns }

/// Joins `parts`, all of the same rows, to one tensor with the columns of all of them; f32.
///
/// # Panics
/// Without parts, or when their rows differ.
pub fn join_columns(rec: &mut Recorder<impl From<JoinColumns>>, parts: Vec<Tensor>) -> Tensor {
    let shape = parts[0].shape;
    assert!(
        parts.iter().all(|part| (part.shape.lead, part.shape.rows) == (shape.lead, shape.rows)),
        "join_columns of unequal rows"
    );
    let y = rec.make(Shape { heads: 1, dim: parts.iter().map(|part| part.shape.width()).sum(), ..shape });
    rec.push(JoinColumns { parts, y });
    y
}

impl JoinColumns {
    /// Every part with the column where it begins.
    fn starts(&self) -> impl Iterator<Item = (u32, Tensor)> + '_ {
        self.parts.iter().scan(0, |next, &part| {
            let start = *next;
            *next += part.shape.width();
            Some((start, part))
        })
    }
}

impl Operation for JoinColumns {
    fn io(&self) -> Io {
        Io { reads: self.parts.clone(), writes: vec![self.y] }
    }
}

impl Lowering for JoinColumns {
    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let copy = |(start, part): (u32, Tensor)| {
            let params =
                Params { n: part.shape.elements() as u32, dim: part.shape.width(), wide: self.y.shape.width(), start };
            let grid = Grid::Elements { lead: part.shape, workgroup: 256, per_thread: 1 };
            Bind { x: part.into(), y: self.y.into() }.dispatch(params, grid)
        };
        self.starts().map(copy).collect()
    }
}

impl Reference for JoinColumns {
    fn reference(&self, host: &mut Host<'_>) {
        let mut y = host.take(self.y);
        for (start, part) in self.starts() {
            let (dim, wide) = (part.shape.width() as usize, self.y.shape.width() as usize);
            cpu_ref::join_columns(host.f32(part), dim, start as usize, wide, &mut y);
        }
        host.put(self.y, y);
    }
}
