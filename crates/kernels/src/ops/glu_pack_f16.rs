//! A gated activation whose readers want f16. Made by the planner, never recorded.

use super::pack_f16::{PackF16, pack_f16, pitches};
use super::{Io, Op, Operation, geglu, swiglu};
use crate::compare::Compare;
use crate::exec::cpu::Host;
use crate::parity::{Case, Gen};
use crate::plan::{Absorbed, Dispatch, Grid, Lower, Makers};
use crate::tensor::Tensor;

kernel! {
    GLU_PACK_F16_SILU: "glu_pack_f16_silu",
    entry: "glu_pack_f16",
    wgsl: ["glu_pack_f16.wgsl", "shared/silu4.wgsl", "shared/half_scale.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"],
    params: Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32 },
    bindings: Bind { gate: Read, up: Read, scales: Write, halves: Write },
    cpu: cpu_ref::swiglu,
    nmse: 1e-6,
}

kernel! {
    GLU_PACK_F16_GELU: "glu_pack_f16_gelu" = GLU_PACK_F16_SILU with
    wgsl: ["glu_pack_f16.wgsl", "shared/gelu4.wgsl", "shared/gelu.wgsl", "shared/half_scale.wgsl", "shared/grid.wgsl", "shared/reduce.wgsl"]
}

/// scales, halves = f16 of activation(gate) * up.
#[derive(Clone, Debug)]
pub struct GluPackF16 {
    pub gate: Tensor,
    pub up: Tensor,
    /// gelu (tanh form), or silu.
    pub gelu: bool,
    pub pack: PackF16,
}

/// Packing of what a gated activation made for nobody else.
pub(crate) fn absorb(op: &Op, makers: &Makers<'_>) -> Option<Absorbed> {
    let Op::PackF16(pack @ PackF16 { scaled: true, .. }) = op else { return None };
    let (gate, up, gelu) = match makers.alone(pack.x)? {
        Op::Swiglu(glu) => (glu.gate, glu.up, false),
        Op::Geglu(glu) if glu.start == 0 && glu.up.shape == glu.gate.shape => (glu.gate, glu.up, true),
        _ => return None,
    };
    if !GLU_PACK_F16_SILU.fits(makers.caps) {
        return None;
    }
    Some(Absorbed { op: GluPackF16 { gate, up, gelu, pack: pack.clone() }.into(), of: vec![pack.x], early: false })
}

impl Operation for GluPackF16 {
    fn io(&self) -> Io {
        Io { reads: vec![self.gate, self.up], ..self.pack.io() }
    }

    fn lower(&self, _: &Lower<'_>) -> Vec<Dispatch> {
        let shape = self.gate.shape;
        let (row_pitch, slab_pitch) = pitches(shape, self.pack.slab);
        let [gate, up, scales, halves] = [self.gate, self.up, self.pack.scales, self.pack.halves].map(Into::into);
        let params = Params { dim: shape.width(), rows: shape.rows, row_pitch, slab_pitch };
        let dispatch = Bind { gate, up, scales, halves }.dispatch(params, Grid::PerRow { lead: shape, per_row: 1 });
        vec![if self.gelu { Dispatch { row: &GLU_PACK_F16_GELU, ..dispatch } } else { dispatch }]
    }

    fn cpu(&self, _: &mut Host<'_>) {
        unreachable!("the CPU executor runs recordings unfused")
    }
}

/// The parts as a model records them, for both activations; rows of few quads, and of more than threads hold.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), 4 * g.pick(&[1, 5, 255, 1024, 1025, 3072, 4000, 8000]));
    let mut case = Case::new(rows);
    let (gate, up) = (case.tensor(g, dim), case.tensor(g, dim));
    let y = if g.coin() { geglu(&mut case.rec, gate, up) } else { swiglu(&mut case.rec, gate, up) };
    let (scales, halves) = pack_f16(&mut case.rec, y);
    case.expect_as(scales, Compare::Exact);
    case.expect_as(halves, Compare::Halves);
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;
    use crate::device::Caps;
    use crate::ops::matmul;
    use crate::plan::{PlanOptions, plan};
    use crate::record::Recorder;
    use crate::table::Table;
    use crate::tensor::{Counts, Lead, Shape, Weight};
    use gguf::GgmlType;

    #[test]
    fn rows_for_cooperative_products_are_packed_where_they_are_gated() {
        let caps = Caps {
            cooperative: true,
            max_workgroup: 1024,
            max_workgroup_bytes: 32 << 10,
            table: Table::usual(Class::Discrete, true),
            ..Caps::WEBGPU
        };
        for (caps, gated) in
            [(&caps, vec!["glu_pack_f16_silu"]), (&Caps { max_workgroup: 256, ..caps.clone() }, vec!["swiglu", "pack_f16"])]
        {
            let mut rec = Recorder::new(Counts { step: 32, out: 0 }, &[]);
            let [gate, up] = [0, 1].map(|n| rec.host_input(n, Shape::new(Lead::Step, 32, 4096)));
            let y = swiglu(&mut rec, gate, up);
            let y = matmul(&mut rec, Weight { id: 0, ty: GgmlType::Q8_0, rows: 64, cols: 4096 }, y);
            rec.output(y);
            let options = PlanOptions { fast: true, ..PlanOptions::default() };
            let rows: Vec<_> = plan(&rec, caps, &options).unwrap().steps.iter().map(|step| step.dispatch.row.name).collect();
            assert_eq!(rows, [gated, vec!["matmul_few_32_narrow"]].concat());
        }
    }
}
