//! Damaged weights: generation stops and reports the position, taps show the layer, and the session
//! stays usable.

use crate::common::{self, Tiny, VOCABULARY, both, drawn, exact, greedy, ids, run};
use kernels::testing::Switches;
use kernels::{Executor, PlanOptions};
use model::{Error, Model, Sampling};

/// A model with one element of one tensor replaced.
fn damaged(executor: &Executor, tensor: &str, at: usize, value: f32) -> Model {
    let tiny = Tiny::qwen3();
    let file = tiny.edited(tiny.metadata(), |name, spec| {
        if name == tensor {
            spec.values[at] = value;
        }
        true
    });
    common::open(&file).unwrap().on(executor.clone()).unwrap()
}

#[test]
fn a_weight_that_is_no_number_stops_generation_at_its_position() {
    let places = [
        ("blk.1.ffn_down.weight", 5, Some(1)),
        ("output.weight", 70 * 64, None),
        ("blk.0.attn_norm.weight", 3, Some(0)),
        ("blk.1.attn_v.weight", 9, Some(1)),
    ];
    // An infinite row of the output matrix may give a logit of minus infinity. This is not an
    // error: such a token is never sampled.
    let harmless = |tensor: &str, value: f32| tensor == "output.weight" && value.is_infinite();
    for executor in both() {
        for (tensor, at, layer) in places {
            for value in
                [f32::NAN, f32::INFINITY, f32::NEG_INFINITY].into_iter().filter(|&value| !harmless(tensor, value))
            {
                let mut session = damaged(&executor, tensor, at, value).session(exact(16)).unwrap();
                session.feed(&ids(21, 1)).unwrap();
                let mut tokens = session.generate_with(greedy(5)).unwrap();
                let error = tokens.next().unwrap().err();
                let Some(Error::NonFinite { position: 20, cause: Some(cause), .. }) = error else {
                    panic!("{tensor} = {value} on {}: {error:?}", executor.kind())
                };
                assert_eq!(cause.layer, layer, "{tensor} = {value} on {}: {cause}", executor.kind());
                assert!(tokens.next().is_none(), "an error ends it");
                drop(tokens);
                assert_eq!(session.tokens(), ids(21, 1));
            }
        }
    }
}

#[test]
fn taps_tell_where_it_began() {
    for executor in both() {
        let plan = PlanOptions::plain().taps(vec!["layer_out".into()]);
        let model = damaged(&executor, "blk.1.ffn_up.weight", 7, f32::NAN);
        let mut session = model.session(exact(16).plan(plan)).unwrap();
        session.feed(&ids(20, 1)).unwrap();
        let mut finite = vec![];
        let error = session.logits(|from, rows, taps| {
            assert_eq!((from, rows.len()), (0, 16 * VOCABULARY as usize));
            finite.extend(taps.iter().map(|t| (t.layer, t.values.iter().all(|v| v.is_finite()))));
        });
        assert!(matches!(error, Err(Error::NonFinite { position: 0, .. })), "{error:?}");
        assert_eq!(finite, [(0, true), (1, false)]);
    }
}

#[test]
fn a_damaged_embedding_is_named_by_position_and_forgotten_by_a_rollback() {
    for executor in both() {
        let model = damaged(&executor, "token_embd.weight", 65 * 64 + 1, f32::NAN);
        let whole: Vec<u32> = ids(40, 1).into_iter().map(|id| if id == 65 { 66 } else { id }).collect();
        let mut session = model.session(exact(16)).unwrap();
        session.feed(&[&whole[..23], &[65], &whole[..10]].concat()).unwrap();
        let error = session.logits(|_, _, _| {}).unwrap_err();
        assert!(matches!(error, Error::NonFinite { position: 23, .. }), "{error}");
        // Its keys and values are beyond the kept positions and must not be read.
        session.rollback(20);
        session.feed(&whole[20..]).unwrap();
        let after = common::logits(&mut session).0;
        let mut fresh = model.session(exact(16)).unwrap();
        fresh.feed(&whole).unwrap();
        let expected = common::logits(&mut fresh).0;
        assert!(common::worst(&expected[20 * VOCABULARY as usize..], &after) <= 1e-5);
    }
}

#[test]
fn one_damaged_sequence_of_a_batch_is_named_and_the_others_go_on() {
    for executor in both() {
        let model = damaged(&executor, "token_embd.weight", 65 * 64, f32::NAN);
        let good: Vec<u32> = ids(12, 2).into_iter().map(|id| if id == 65 { 66 } else { id }).collect();
        let mut batch = model.batch(exact(16).sequences(3)).unwrap();
        batch.feed(0, &good).unwrap();
        batch.feed(1, &[1, 2, 65]).unwrap();
        batch.feed(2, &good[..5]).unwrap();
        let error = batch.step(&[Sampling::greedy()]).unwrap_err();
        assert!(matches!(error, Error::NonFinite { sequence: 1, position: 2, .. }), "{error}");
        assert_eq!((batch.tokens(0), batch.tokens(2)), (&good[..], &good[..5]));
        batch.release(1);
        for _ in 0..4 {
            assert_eq!(batch.step(&[Sampling::greedy()]).unwrap().len(), 2);
        }
        let mut alone = model.session(exact(16)).unwrap();
        alone.feed(&good).unwrap();
        assert_eq!(batch.tokens(0)[12..], drawn(&run(&mut alone, greedy(4))));
    }
}
