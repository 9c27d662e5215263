//! Parity cases of `sum_squares`.

use super::sum_squares::sum_squares;
use crate::graph::tensor::StateKind;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("sum_squares", case)];

/// One to three states of one word to several parts, tiny and large words.
pub fn case(g: &mut Gen) -> Case {
    let count = g.pick(&[1, 2, 3]);
    let words: Vec<u32> = (0..count).map(|_| g.pick(&[1, 255, 256, 257, 16_383, 16_384, 16_385, 50_000])).collect();
    let kinds: Vec<StateKind> = words.iter().map(|&n| StateKind::Words(n)).collect();
    let mut case = Case::with_states(1, &kinds, 1, 1);
    let states: Vec<_> = (0..count).map(|n| case.rec.state(n)).collect();
    for (&state, &n) in states.iter().zip(&words) {
        case.words(g, state, n);
    }
    let y = sum_squares(&mut case.rec, &states);
    case.expect(y);
    case
}
