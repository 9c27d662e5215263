//! Parity cases of `norm_matmul_vec_group`.

use super::matmul::matmul;
use super::matmul_vec::EIGHT;
use super::matmul_vec_case::LONG;
use crate::elementwise::add::{add, add_bias};
use crate::graph::tensor::Tensor;
use crate::kernel::random::Gen;
use crate::norm::rms_norm::rms_norm;
use crate::testing::parity::{Case, MakeCase};
use gguf::GgmlType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_matmul_vec_group", case)];

/// A length of short and long rows, in whole eights.
pub(crate) fn columns(g: &mut Gen, ty: GgmlType) -> u32 {
    g.cols(ty).next_multiple_of(EIGHT) + g.pick(&[0, 0, LONG])
}

/// A row that is normed, with and without a weight, or not; and which of both. A normed row is one
/// tensor or a sum: of two tensors, of a tensor and a product, or of a tensor and a norm.
pub(crate) fn row(case: &mut Case, g: &mut Gen, cols: u32) -> (Tensor, bool) {
    if g.pick(&[false, false, true]) {
        return (case.tensor(g, cols), false);
    }
    let a = case.squared(g, cols);
    let b = match g.pick(&[0, 1, 2, 3]) {
        0 => None,
        1 => Some(case.tensor(g, cols)),
        2 => {
            let (x, w) = (case.tensor(g, 64), case.weight(g, GgmlType::F32, cols, 64));
            Some(matmul(&mut case.rec, w, x))
        }
        _ => {
            let (x, w) = (case.squared(g, cols), g.coin().then(|| case.vector(g, cols)));
            Some(rms_norm(&mut case.rec, x, w, 1e-6))
        }
    };
    let h = b.map_or(a, |b| {
        let h = if g.coin() { add(&mut case.rec, a, b) } else { add(&mut case.rec, b, a) };
        case.expect(h);
        h
    });
    let u = g.coin().then(|| case.vector(g, cols));
    (rms_norm(&mut case.rec, h, u, g.pick(&[1e-6_f32, 1e-5])), true)
}

/// Two and three products of a row that is normed or not, one of a row that is normed, with
/// different formats, odd and even numbers of rows around the workgroup's, with and without biases.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format();
    let cols = columns(g, ty);
    let mut case = Case::new(1);
    let (x, normed) = row(&mut case, g, cols);
    for n in 0..if normed { g.pick(&[1, 2, 3]) } else { g.pick(&[2, 3]) } {
        let ty = if n == 0 { ty } else { g.format_with(|f| cols.is_multiple_of(f.ty.block_size() as u32)) };
        let rows = g.pick(&[5, 8, 31, 97]);
        let w = case.weight(g, ty, rows, cols);
        let bias = g.coin().then(|| case.vector(g, rows));
        let y = matmul(&mut case.rec, w, x);
        let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
        case.expect(y);
    }
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recorder;
    use crate::caps::Caps;
    use crate::elementwise::swiglu::swiglu;
    use crate::graph::tensor::{Counts, Lead, Shape, Weight};
    use crate::plan::{PlanOptions, plan};

    const CAPS: Caps = Caps { max_storage_buffers: 16, ..Caps::WEBGPU };

    fn weight(id: u32, rows: u32) -> Weight {
        Weight::loaded(id, GgmlType::F16, rows, 256)
    }

    /// The kernels of the half of a layer that begins with a residual sum of `step` rows: the sum
    /// with a product, a norm, and what `then` records of it.
    fn kernels(caps: &Caps, step: u32, then: impl Fn(&mut Recorder, Tensor)) -> Vec<&'static str> {
        let mut rec = Recorder::new(Counts { step, out: 0 }, &[]);
        let [a, b] = [0, 1].map(|n| rec.host_input(n, Shape::new(Lead::Step, step, 256)));
        let y = matmul(&mut rec, weight(0, 256), b);
        let h = add(&mut rec, a, y);
        let x = rms_norm(&mut rec, h, None, 1e-6);
        then(&mut rec, x);
        rec.output(h);
        plan(&rec, caps, &PlanOptions::plain())
            .unwrap()
            .dispatches
            .iter()
            .map(|placed| placed.dispatch.variant.name)
            .collect()
    }

    fn three(rec: &mut Recorder, x: Tensor) {
        for id in 1..4 {
            let y = matmul(rec, weight(id, 64), x);
            rec.output(y);
        }
    }

    #[test]
    fn products_of_one_row_norm_it_and_the_sum_moves_to_the_product_before() {
        assert_eq!(kernels(&CAPS, 1, three), ["matmul_vec", "norm_matmul_vec_group"]);
        let gated = |rec: &mut Recorder, x: Tensor| {
            let [gate, up] = [1, 2].map(|id| matmul(rec, weight(id, 256), x));
            let y = swiglu(rec, gate, up);
            let y = matmul(rec, weight(3, 64), y);
            rec.output(y);
        };
        assert_eq!(kernels(&CAPS, 1, gated), ["matmul_vec", "norm_matmul_vec_glu_silu", "matmul_vec"]);
        let lone = |rec: &mut Recorder, x: Tensor| {
            let y = matmul(rec, weight(1, 64), x);
            rec.output(y);
        };
        assert_eq!(kernels(&CAPS, 1, lone), ["matmul_vec", "norm_matmul_vec_group"]);
    }

    #[test]
    fn several_rows_few_bindings_and_other_readers_of_the_norm_keep_it_apart() {
        assert_eq!(kernels(&CAPS, 2, three)[..2], ["matmul", "add_rms_norm"]);
        assert_eq!(
            kernels(&Caps::WEBGPU, 1, three),
            ["matmul_vec", "add_rms_norm", "matmul_vec", "matmul_vec", "matmul_vec"]
        );
        let read_back = |rec: &mut Recorder, x: Tensor| {
            three(rec, x);
            rec.output(x);
        };
        assert_eq!(kernels(&CAPS, 1, read_back), ["matmul_vec", "add_rms_norm", "norm_matmul_vec_group"]);
    }
}
