//! Batches: sequences of different lengths in one step. Each gives the same result as alone.

use crate::common::{Tiny, both, drawn, exact, greedy, ids, run};
use kernels::Executor;
use model::{Batch, Error, Model, Sampling};
use std::sync::atomic::Ordering;

fn batch(model: &Model, sequences: u32, chunk: u32) -> Batch {
    model.batch(exact(chunk).sequences(sequences)).unwrap()
}

fn alone(model: &Model, prompt: &[u32], tokens: usize) -> Vec<u32> {
    let mut session = model.session(exact(16)).unwrap();
    session.feed(prompt).unwrap();
    drawn(&run(&mut session, greedy(tokens)))
}

fn steps(batch: &mut Batch, n: usize) {
    for _ in 0..n {
        batch.step(&[Sampling::greedy()]).unwrap();
    }
}

#[test]
fn unequal_sequences_get_what_each_would_alone() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let prompts = [ids(1, 1), ids(50, 2), vec![], ids(17, 3), ids(16, 4)];
        let alone: Vec<Vec<u32>> =
            prompts.iter().map(|p| if p.is_empty() { vec![] } else { alone(&model, p, 9) }).collect();
        // The chunk sizes cut prompts, hold several prompts, or are smaller than the batch.
        for chunk in [1, 3, 16, 512] {
            let mut batch = batch(&model, 5, chunk);
            for (n, prompt) in (0..).zip(&prompts) {
                batch.feed(n, prompt).unwrap();
            }
            for step in 0..9 {
                let draws = batch.step(&[Sampling::greedy()]).unwrap();
                let got: Vec<(u32, u32)> = draws.iter().map(|d| (d.sequence, d.id)).collect();
                let expected = [0, 1, 3, 4].map(|s| (s, *alone[s as usize].get(step).unwrap()));
                assert_eq!(got, expected, "step {step} in chunks of {chunk} on {}", executor.kind());
            }
            for (n, prompt) in prompts.iter().enumerate() {
                assert_eq!(batch.tokens(n as u32), [&prompt[..], &alone[n]].concat());
            }
        }
    }
}

#[test]
fn sequences_are_fed_rolled_back_and_released_while_others_go_on() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let (a, b, c) = (ids(30, 1), ids(5, 2), ids(40, 3));
        let mut batch = batch(&model, 3, 16);
        batch.feed(0, &a).unwrap();
        steps(&mut batch, 6);
        batch.feed(1, &b).unwrap();
        steps(&mut batch, 6);
        let said = batch.tokens(1).to_vec();
        assert_eq!(said[5..], alone(&model, &b, 6));
        batch.rollback(1, 8);
        batch.feed(1, &c).unwrap();
        let changed = [&said[..8], &c].concat();
        batch.feed(2, &c).unwrap();
        steps(&mut batch, 6);
        assert_eq!(batch.tokens(1), [&changed[..], &alone(&model, &changed, 6)].concat());
        batch.release(1);
        steps(&mut batch, 6);
        assert!(batch.tokens(1).is_empty());
        assert_eq!(batch.tokens(0)[30..], alone(&model, &a, 24));
        assert_eq!(batch.tokens(2)[40..], alone(&model, &c, 12));
        batch.feed(1, &a).unwrap();
        steps(&mut batch, 2);
        assert_eq!(batch.tokens(1)[30..], alone(&model, &a, 2));
    }
}

#[test]
fn every_sequence_draws_by_its_own_parameters() {
    let model = Tiny::qwen3().on(&Executor::Cpu);
    let hot = Sampling { temperature: 1.2, repetition_penalty: 1.3, seed: 5, ..Sampling::default() };
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut batch = batch(&model, 3, 16);
        for n in 0..3 {
            batch.feed(n, &ids(12, 1)).unwrap();
        }
        for _ in 0..8 {
            batch.step(&[hot.clone(), Sampling::greedy()]).unwrap();
        }
        let mut session = model.session(exact(16)).unwrap();
        session.feed(&ids(12, 1)).unwrap();
        let options = greedy(8).sampling(hot.clone());
        assert_eq!(batch.tokens(0)[12..], drawn(&run(&mut session, options)), "the first draws as a session does");
        assert_eq!(batch.tokens(1)[12..], alone(&model, &ids(12, 1), 8), "penalties are another's");
        assert_eq!(batch.tokens(1), batch.tokens(2), "the last parameters serve the rest");
    }
    let mut same = batch(&model, 2, 16);
    same.feed(0, &ids(12, 1)).unwrap();
    same.feed(1, &ids(12, 1)).unwrap();
    for _ in 0..12 {
        same.step(std::slice::from_ref(&hot)).unwrap();
    }
    assert_ne!(same.tokens(0), same.tokens(1), "sequences of one seed differ");
}

#[test]
fn a_full_sequence_draws_no_more_and_the_rest_go_on() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut batch = model.batch(exact(16).context(32).sequences(3)).unwrap();
        batch.feed(0, &ids(29, 1)).unwrap();
        batch.feed(1, &ids(25, 2)).unwrap();
        batch.feed(2, &ids(32, 3)).unwrap();
        let counts: Vec<usize> = (0..9).map(|_| batch.step(&[Sampling::greedy()]).unwrap().len()).collect();
        assert_eq!(counts, [2, 2, 2, 1, 1, 1, 1, 0, 0]);
        assert_eq!(batch.tokens(1)[25..], alone(&model, &ids(25, 2), 7));
        assert!(matches!(batch.feed(0, &[1]).unwrap_err(), Error::ContextOverflow { needed: 33, limit: 32 }));
        assert!(matches!(batch.feed(0, &[300]).unwrap_err(), Error::TokenId { id: 300, .. }));
    }
}

#[test]
fn a_cancelled_step_draws_nothing_and_the_next_goes_on() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut batch = batch(&model, 2, 16);
        batch.feed(0, &ids(100, 1)).unwrap();
        batch.feed(1, &ids(3, 2)).unwrap();
        let flag = batch.cancel_flag();
        flag.store(true, Ordering::Relaxed);
        assert!(matches!(batch.step(&[Sampling::greedy()]).unwrap_err(), Error::Cancelled));
        steps(&mut batch, 3);
        flag.store(true, Ordering::Relaxed);
        assert!(matches!(batch.step(&[Sampling::greedy()]).unwrap_err(), Error::Cancelled));
        assert_eq!(batch.tokens(1).len(), 6);
        steps(&mut batch, 3);
        assert_eq!(batch.tokens(0)[100..], alone(&model, &ids(100, 1), 6));
        assert_eq!(batch.tokens(1)[3..], alone(&model, &ids(3, 2), 6));
    }
}

#[test]
fn a_profile_needs_something_fed_and_leaves_the_batch_as_it_was() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut batch = batch(&model, 3, 16);
        assert!(matches!(batch.profile().unwrap_err(), Error::NothingFed));
        batch.feed(0, &ids(9, 1)).unwrap();
        batch.feed(2, &ids(3, 2)).unwrap();
        steps(&mut batch, 2);
        // The CPU has no timestamps, nor has a device with WebGPU's limits.
        let timed = matches!(&executor, Executor::Gpu(device) if device.caps().timestamps);
        match batch.profile() {
            Ok(profile) => assert!(timed && profile.nanoseconds() > 0.0),
            Err(e) => assert!(!timed, "{e}"),
        }
        steps(&mut batch, 3);
        assert_eq!(batch.tokens(0)[9..], alone(&model, &ids(9, 1), 5));
        assert_eq!(batch.tokens(2)[3..], alone(&model, &ids(3, 2), 5));
    }
}
