//! Parity cases of `embed`.

use super::embed::embed;
use crate::graph::record::Recorder;
use crate::graph::tensor::StateKind;
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("embed", case), ("embed_ids", ids_case)];

/// Tables of every format, scaled or not, several sequences, positions that wrap a ring.
pub fn case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.small(), g.format());
    let (cols, vocab) = (g.cols(ty), 7);
    let mut case = Case::with_states(rows, &[StateKind::Tokens], 2, 8);
    let table = case.weight(g, ty, vocab, cols);
    case.place(g, 13);
    case.tokens(g, vocab);
    let tokens = case.rec.state(0);
    let y = embed(&mut case.rec, table, tokens);
    let y = if g.coin() { crate::elementwise::scale::scale(&mut case.rec, y, 39.191_836) } else { y };
    case.expect(y);
    case
}

/// Tables of every format, whose rows are read by ids from the step.
pub fn ids_case(g: &mut Gen) -> Case {
    let (rows, ty) = (g.small(), g.format());
    let (cols, vocab) = (g.cols(ty), 7);
    let mut case = Case::with_states(rows, &[StateKind::Tokens], 1, 1);
    case.rec = Recorder::of_documents(case.rec.capacity(), &[StateKind::Tokens]);
    case.input.ids = (0..rows).map(|_| g.below(vocab)).collect();
    let table = case.weight(g, ty, vocab, cols);
    let tokens = case.rec.state(0);
    let y = embed(&mut case.rec, table, tokens);
    case.expect(y);
    case
}
