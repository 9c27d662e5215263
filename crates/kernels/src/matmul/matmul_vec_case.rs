//! Parity cases of `matmul_vec`.

use super::matmul::matmul_exact;
use crate::elementwise::add::add_bias;
use crate::kernel::random::Gen;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};
use gguf::GgmlType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("matmul_vec", case)];

/// Columns of rows that more threads share.
pub(crate) const LONG: u32 = 1024;

/// Every format, with several rows in f32; row counts around the workgroup's, row lengths that are
/// not a multiple of 4 or of 8, short and long. A single result has a bias as large as all its
/// terms together: if the terms cancel, no other part of the output shows how large an error may
/// be.
pub fn case(g: &mut Gen) -> Case {
    let ty = g.format();
    let (cols, n) = (g.cols(ty) + g.pick(&[0, 0, LONG]), g.dim());
    let mut case = Case::new(if ty == GgmlType::F32 { g.pick(&[1, 2, 9, 64]) } else { 1 });
    case.options = case.options.precision(Precision::Fast);
    let w = case.weight(g, ty, n, cols);
    let x = case.tensor(g, cols);
    let length = case.input.host[0].iter().map(|x| x * x).sum::<f32>().sqrt();
    let bias = g.coin().then(|| g.values(n as usize));
    let bias = if n == 1 { Some(vec![length]) } else { bias }.map(|values| case.given_vector(values));
    let y = matmul_exact(&mut case.rec, w, x);
    let y = bias.map_or(y, |b| add_bias(&mut case.rec, y, b));
    case.expect(y);
    case
}
