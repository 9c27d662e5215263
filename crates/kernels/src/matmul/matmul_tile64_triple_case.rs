//! Parity cases of `matmul_tile64_triple`.

use super::matmul_tile64::TILE;
use super::matmul_tile64_case::LONG;
use super::matmul_tile64_pair_case::recorded;
use crate::caps::table::measured::TILE64_LONG_COLUMNS;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_tile64_triple", case)];

/// Three products of the same rows, the third of the same format or another, with partly filled
/// last tiles, also of a single row of weights, with and without biases, and the activations of
/// [`crate::matmul::matmul_tile64`].
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format_with(|f| f.tiles().is_some());
    let third = if g.coin() { ty } else { g.format_with(|f| f.tiles().is_some()) };
    let shapes = [
        ([TILE * 144 - 97, 97, 33], 0),
        ([31, TILE * 144, 1], 0),
        ([TILE * 72 + 1, TILE * 72, 97], 0),
        // Narrow workgroups, and long ones.
        ([31, 97, 33], TILE64_LONG_COLUMNS),
        ([TILE * LONG - 1, TILE + 1, 33], TILE64_LONG_COLUMNS),
    ];
    let ([n, other_n, third_n], long) = g.pick(&shapes);
    let cols = 256 * g.pick(&[1, 2, 5]) + long;
    recorded(g, cols, &[(n, ty), (other_n, ty), (third_n, third)])
}

#[cfg(test)]
mod tests {
    use crate::Recorder;
    use crate::caps::table::Table;
    use crate::caps::{Caps, Class};
    use crate::graph::tensor::Counts;
    use crate::graph::tensor::{Lead, Shape, Weight};
    use crate::matmul::matmul::matmul;
    use crate::plan::{PlanOptions, Precision, plan};
    use gguf::GgmlType;
    use gguf::GgmlType::{BF16, F16, Q4_K, Q6_K};

    #[test]
    fn a_third_of_any_format_joins_two_of_one_where_bindings_suffice() {
        let caps = Caps {
            cooperative: true,
            max_workgroup: 1024,
            max_workgroup_bytes: 48 << 10,
            max_storage_buffers: 11,
            table: Table::usual(Class::Discrete, true),
            ..Caps::WEBGPU
        };
        let of_shape = |caps: &Caps, step: u32, [ty, third]: [GgmlType; 2], [q, kv]: [u32; 2], cols: u32| {
            let mut rec = Recorder::new(Counts { step, out: 0 }, &[]);
            let x = rec.host_input(0, Shape::new(Lead::Step, step, cols));
            for (id, (ty, rows)) in (0..).zip([(ty, q), (ty, kv), (third, kv)]) {
                let y = matmul(&mut rec, Weight::loaded(id, ty, rows, cols), x);
                rec.output(y);
            }
            let options = PlanOptions::plain().precision(Precision::Fast);
            plan(&rec, caps, &options)
                .unwrap()
                .dispatches
                .iter()
                .map(|placed| placed.dispatch.variant.name)
                .collect::<Vec<_>>()
        };
        let kernels = |caps: &Caps, step: u32, types: [GgmlType; 2]| of_shape(caps, step, types, [4096, 1024], 4096);
        for types in [[Q4_K, Q4_K], [Q4_K, Q6_K], [F16, F16], [BF16, F16], [F16, Q4_K]] {
            assert_eq!(kernels(&caps, 32, types), ["pack_f16", "matmul_tile32_triple"]);
            assert_eq!(
                kernels(&Caps { max_storage_buffers: 8, ..caps.clone() }, 32, types),
                ["pack_f16", "matmul_tile32_pair", "matmul_tile32_narrow"]
            );
        }
        assert_eq!(kernels(&caps, 2, [F16, F16]), ["pack_f16", "matmul_tile16_triple"]);
        assert_eq!(kernels(&caps, 1, [F16, F16]), ["norm_matmul_vec_group"]);
        // Smaller weights have narrow workgroups, until the rows make more tiles.
        let small = |step: u32| of_shape(&caps, step, [Q4_K, Q6_K], [1536, 256], 1536);
        assert_eq!(small(64), ["pack_f16", "matmul_tile64_triple_narrow"]);
        assert_eq!(small(128), ["pack_f16", "matmul_tile64_triple_long"]);
        assert_eq!(small(129), ["pack_f16", "matmul_tile64_triple"]);
        // A device with less memory for workgroups has all forms but long ones of few rows.
        let middle = |caps: &Caps| of_shape(caps, 32, [Q4_K, Q6_K], [2048, 512], 2048);
        assert_eq!(middle(&caps), ["pack_f16", "matmul_tile32_triple_long"]);
        let less = Caps { max_workgroup: 256, max_workgroup_bytes: 32 << 10, ..caps.clone() };
        assert_eq!(middle(&less), ["pack_f16", "matmul_tile32_triple"]);
        assert_eq!(of_shape(&less, 32, [Q4_K, Q6_K], [1536, 256], 1536), ["pack_f16", "matmul_tile32_triple_narrow"]);
    }
}
