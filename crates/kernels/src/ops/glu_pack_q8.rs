//! A gated activation whose readers want 8 bits. Made by the planner, never recorded.

use super::pack_q8::{BLOCK, pack_q8};
use super::{Io, Op, Operation, geglu_columns, swiglu};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Dispatch, Grid, Lower, Makers};
use crate::tensor::Tensor;

kernel! {
    GLU_PACK_Q8_SILU: "glu_pack_q8_silu",
    entry: "glu_pack_q8",
    wgsl: ["glu_pack_q8.wgsl", "shared/silu4.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/grid.wgsl"],
    params: Params { k: u32, rows: u32, up_k: u32, start: u32 },
    bindings: Bind { gate: Read, up: Read, packed: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-4,
}

kernel! {
    GLU_PACK_Q8_GELU: "glu_pack_q8_gelu" = GLU_PACK_Q8_SILU with
    wgsl: ["glu_pack_q8.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/pack_q8.wgsl", "shared/q8_block.wgsl", "shared/q8_store.wgsl", "shared/grid.wgsl"]
}

const WG: u32 = 128;

/// packed = 8 bits of activation(gate) * up[.., start..].
#[derive(Clone, Debug)]
pub struct GluPackQ8 {
    pub gate: Tensor,
    pub up: Tensor,
    pub start: u32,
    /// gelu (tanh form), or silu.
    pub gelu: bool,
    pub packed: Tensor,
}

/// Packing of what a gated activation made for nobody else.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::PackQ8(pack) = op else { return None };
    let (gate, up, start, gelu) = match makers.alone(pack.x)? {
        Op::Swiglu(glu) => (glu.gate, glu.up, 0, false),
        Op::Geglu(glu) => (glu.gate, glu.up, glu.start, true),
        _ => return None,
    };
    if !start.is_multiple_of(4) || !up.shape.width().is_multiple_of(4) {
        return None;
    }
    Some(Absorbed { op: GluPackQ8 { gate, up, start, gelu, packed: pack.packed }.into(), of: vec![pack.x], early: false })
}

impl Operation for GluPackQ8 {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate, self.up], writes: vec![self.packed] }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.gate.shape;
        let bind = Bind { gate: self.gate.into(), up: self.up.into(), packed: self.packed.into() };
        let grid = Grid::Elements { lead: shape, workgroup: WG, per_thread: 4 };
        let dispatch = bind.dispatch(Params { k: shape.width(), rows: shape.rows, up_k: self.up.shape.width(), start: self.start }, grid);
        vec![if self.gelu { Dispatch { row: &GLU_PACK_Q8_GELU, ..dispatch } } else { dispatch }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them, for both activations; of a wider `up` the columns that are meant.
pub fn case(g: &mut Gen) -> Case {
    let (rows, k) = (g.small(), BLOCK * g.pick(&[1, 2, 31, 32, 33]));
    let mut case = Case::new(rows);
    let (before, behind) = (g.pick(&[0, 0, 4, 12]), g.pick(&[0, 8]));
    let (gate, up) = (case.tensor(g, k), case.tensor(g, before + k + behind));
    let y = if before + behind > 0 || g.coin() { geglu_columns(&mut case.rec, gate, up, before) } else { swiglu(&mut case.rec, gate, up) };
    let packed = pack_q8(&mut case.rec, y);
    case.expect_as(packed, Compare::Packed { k });
    case
}
