//! Parity cases of `matmul_tile128_pair` and `matmul_tile128_halves_pair`.

use super::matmul::matmul;
use super::matmul_tile128::DEPTH;
use crate::kernel::format::Format;
use crate::kernel::random::Gen;
use crate::plan::Precision;
use crate::testing::Switches;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[
    ("matmul_tile128_pair", case),
    ("matmul_tile128_pair_narrow", case),
    ("matmul_tile128_halves_pair", halves_case),
    ("matmul_tile128_halves_pair_narrow", halves_case),
];

/// Of every format with units.
pub fn case(g: &mut Gen) -> Case {
    pair(g, |f| f.units.is_some())
}

/// Of both formats of 16 bits.
pub fn halves_case(g: &mut Gen) -> Case {
    pair(g, Format::is_halves)
}

/// Two products of the same rows, tile edges in all three dimensions, activations far outside the
/// range of f16.
fn pair(g: &mut Gen, of: impl Fn(&Format) -> bool) -> Case {
    let (rows, ty) = (g.pick(&[33, 64, 127, 128, 129, 300]), g.format_with(of));
    let (cols, n) = (g.cols(ty).next_multiple_of(DEPTH), g.pick(&[4, 60, 124, 128, 132, 300]));
    let mut case = Case::new(rows);
    // Small tiles take so few results where more may be rounded.
    case.options = case.options.precision(Precision::Fast).halves();
    // Then some cases have so many tiles that wide ones take less time.
    case.workgroups = g.pick(&[None, Some(1)]);
    let weights = [(); 2].map(|()| case.weight(g, ty, n, cols));
    let x = if g.coin() { case.uniform(g, cols, 1e6) } else { case.tensor(g, cols) };
    for w in weights {
        let y = matmul(&mut case.rec, w, x);
        case.expect(y);
    }
    case
}
