//! Parity cases of `norm_matmul_vec` and `matmul_narrow`.

use super::matmul::matmul_exact;
use crate::elementwise::add::add;
use crate::elementwise::scale::scale;
use crate::experts::group_experts_case::choices;
use crate::experts::matmul_experts::matmul_experts;
use crate::experts::matmul_vec_q8_experts_glu_case::product as rounded;
use crate::experts::route::Routes;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::format::FORMATS;
use crate::kernel::random::Gen;
use crate::norm::pack_q8::pack_q8;
use crate::norm::rms_norm::rms_norm;
use crate::plan::Precision;
use crate::testing::parity::{Case, MakeCase};
use gguf::GgmlType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("norm_matmul_vec", case), ("matmul_narrow", rows_case)];

/// One row with a weight of any format, up to eight with an f32 weight.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.pick(&[1, 1, 2, 5, 8]), g.format());
    router(g, rows, if rows == 1 { ty } else { GgmlType::F32 })
}

/// Rows around the edges of tiles, with an f32 weight. Where products of experts are rounded, the
/// product norms the rows.
pub fn rows_case(g: &mut Gen) -> Case {
    let rows = g.pick(&[9, 15, 16, 17, 33, 64, 130]);
    router(g, rows, GgmlType::F32)
}

/// A router as models record it, with the sum before the norm or without it, with the experts'
/// product that packs the same rows or rows of another norm, with and without a factor; rows of any
/// magnitude, numbers of experts around those of a workgroup.
fn router(g: &mut Gen, rows: u32, ty: GgmlType) -> Case {
    let (cols, count) = (g.cols(ty).next_multiple_of(256), g.pick(&[1, 2, 5, 8, 31, 33]));
    let mut case = Case::new(rows);
    case.options = case.options.precision(Precision::Fast);
    let u = g.coin().then(|| case.vector(g, cols));
    // Plans of more than eight rows round the products of experts to f16 or to 8 bits. Squares
    // would lose too much in 8 bits, so they are packed before.
    let packs = rows > 8 && g.coin();
    let a = if rows > 8 && !packs { case.tensor(g, cols) } else { case.squared(g, cols) };
    let h = if g.coin() {
        let b = case.tensor(g, cols);
        let h = add(&mut case.rec, a, b);
        case.expect(h);
        h
    } else {
        a
    };
    let x = rms_norm(&mut case.rec, h, u, 1e-6);
    let w = case.weight(g, ty, count, cols);
    let logits = matmul_exact(&mut case.rec, w, x);
    let logits = if g.coin() { scale(&mut case.rec, logits, 0.25) } else { logits };
    case.expect(logits);
    let values = choices(g, rows, count, 1);
    let experts = case.given(Shape::new(Lead::Step, rows, 1), values);
    let routes = Routes::of(&mut case.rec, experts, experts, count);
    let x = if g.coin() { x } else { rms_norm(&mut case.rec, h, None, 1e-6) };
    let ty = FORMATS.iter().find(|f| f.in_8_bits() && f.ty.block_size() == 32).expect("a format with units").ty;
    let product = case.weight(g, ty, count * 31, cols);
    let y = if packs {
        let packed = pack_q8(&mut case.rec, x);
        rounded(&mut case, product, 0..31, x, packed, &routes)
    } else {
        matmul_experts(&mut case.rec, product, 0..31, x, &routes)
    };
    case.expect(y);
    case
}
