//! Parity cases of `glu_pack_f16`.

use super::pack_f16::pack_f16;
use crate::elementwise::geglu::geglu_columns;
use crate::elementwise::swiglu::swiglu;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("glu_pack_f16", case)];

/// The parts as a model records them, for both activations; rows of few quads, and of more than the
/// threads hold; columns of a wider `up` or all of it.
pub fn case(g: &mut Gen) -> Case {
    let (rows, dim) = (g.small(), 4 * g.pick(&[1, 5, 255, 1024, 1025, 3072, 4000, 8000]));
    let mut case = Case::new(rows);
    let (before, behind) = if dim <= 4 * 1024 { (4 * g.pick(&[0, 0, 3]), 4 * g.pick(&[0, 0, 5])) } else { (0, 0) };
    let (gate, up) = (case.tensor(g, dim), case.tensor(g, before + dim + behind));
    let y = if before + behind > 0 || g.coin() {
        geglu_columns(&mut case.rec, gate, up, before)
    } else {
        swiglu(&mut case.rec, gate, up)
    };
    let (scales, halves) = pack_f16(&mut case.rec, y);
    case.expect(scales);
    case.expect(halves);
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;
    use crate::Recorder;
    use crate::caps::Caps;
    use crate::caps::table::Table;
    use crate::graph::tensor::{Counts, Lead, Shape, Weight};
    use crate::matmul::matmul::matmul;
    use crate::plan::{PlanOptions, Precision, plan};
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
        for (caps, gated) in [
            (&caps, vec!["glu_pack_f16_silu"]),
            (&Caps { max_workgroup: 256, ..caps.clone() }, vec!["swiglu", "pack_f16"]),
        ] {
            let mut rec = Recorder::new(Counts { step: 32, out: 0 }, &[]);
            let [gate, up] = [0, 1].map(|n| rec.host_input(n, Shape::new(Lead::Step, 32, 4096)));
            let y = swiglu(&mut rec, gate, up);
            let y = matmul(&mut rec, Weight::loaded(0, GgmlType::Q8_0, 64, 4096), y);
            rec.output(y);
            let options = PlanOptions::plain().precision(Precision::Fast);
            let kernels: Vec<_> = plan(&rec, caps, &options)
                .unwrap()
                .dispatches
                .iter()
                .map(|placed| placed.dispatch.variant.name)
                .collect();
            assert_eq!(kernels, [gated, vec!["matmul_tile32_narrow"]].concat());
        }
    }
}
