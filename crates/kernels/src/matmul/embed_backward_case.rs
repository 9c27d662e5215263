//! Parity cases of `embed_backward`.

use super::embed::{Embed, Ids};
use super::embed_backward::embed_backward;
use crate::elementwise::scale::scale;
use crate::graph::record::Recorder;
use crate::graph::tensor::{Input, StateKind};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};
use gguf::GgmlType;

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("embed_backward", case)];

/// Few and many ids, all different or mostly the same, with more rows in the plan than in the step,
/// added to sums that hold something.
pub fn case(g: &mut Gen) -> Case {
    let (rows, vocabulary, dim) = (g.pick(&[1, 2, 3, 26, 301]), g.pick(&[1, 2, 40, 500]), g.dim().min(300));
    let kinds = [StateKind::Words(vocabulary * dim)];
    let mut case = Case::with_states(rows, &kinds, 1, 1);
    case.rec = Recorder::of_documents(case.rec.capacity(), &kinds);
    g.block();
    case.input.ids = (0..rows).map(|_| g.id(vocabulary)).collect();
    let state = case.rec.state(0);
    case.words(g, state, vocabulary * dim);
    let table = case.weight(g, GgmlType::F32, vocabulary, dim);
    let ids = Ids::Step { ids: case.rec.input(Input::Ids), numbers: case.rec.input(Input::Numbers) };
    let dy = case.tensor(g, dim);
    // Values that a kernel made hold anything in the rows behind the step.
    let dy = scale(&mut case.rec, dy, 0.5);
    embed_backward(&mut case.rec, &Embed { table, ids, scale: 1.0, y: dy }, dy, state);
    case
}
