//! Parity cases of `penalize`.

use super::penalize::penalize;
use crate::graph::sampling::SampleParams;
use crate::graph::tensor::{Lead, Shape, StateKind};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("penalize", case)];

/// Vocabularies with sizes around the blocks', no history, a history longer than the window,
/// repeated ids, each penalty alone and all together.
pub fn case(g: &mut Gen) -> Case {
    let (rows, vocab, capacity) = (g.small(), g.pick(&[1, 7, 2047, 2048, 2049, 5003]), g.pick(&[1, 64, 700]));
    let mut case = Case::with_states(rows, &[StateKind::Tokens], 3, capacity);
    case.place(g, capacity);
    // Few ids, so that they repeat, up to the last of the vocabulary.
    case.tokens(g, vocab.min(50));
    case.tokens(g, vocab);
    case.input.out_rows.reverse();
    case.input.sampling = (0..rows)
        .map(|_| SampleParams {
            repetition: g.pick(&[1.0, 1.3, 0.8]),
            frequency: g.pick(&[0.0, 0.2, -0.1]),
            presence: g.pick(&[0.0, 0.7]),
            last_n: g.pick(&[0, 1, 64, 300, u32::MAX]),
            ..SampleParams::default()
        })
        .collect();
    let values = g.values((rows * vocab) as usize);
    let logits = case.given(Shape::new(Lead::Out, rows, vocab), values);
    let tokens = case.rec.state(0);
    let y = penalize(&mut case.rec, logits, tokens);
    case.expect(y);
    case
}
