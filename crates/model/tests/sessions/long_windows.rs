//! Prompts of 8,192 tokens over sliding windows: the same on both executors, and no slower than their arithmetic.

use crate::common::{Tiny, drawn, exact, gpu, greedy, ids, logits, run, webgpu, worst};
use kernels::Executor;
use model::{Session, SessionOptions};
use std::time::Instant;

const LONG: usize = 8192;

fn narrow(tiny: Tiny) -> Tiny {
    Tiny { embedding: 32, heads: 2, kv_heads: 1, head_dim: 16, feed_forward: 32, context: 16384, ..tiny }
}

/// A sliding layer, a full one, and a sliding one that shares the first one's keys.
fn gemma4() -> Tiny {
    Tiny { layers: 3, shared: 1, heads: 1, ..narrow(Tiny::gemma4()) }
}

fn options() -> SessionOptions {
    exact(512).context(LONG as u32 + 100)
}

fn same_over_8192_tokens(tiny: &Tiny, executor: &Executor) {
    let talk = |executor: &Executor| {
        let mut session: Session = tiny.on(executor).session(options()).unwrap();
        session.feed(&ids(LONG, 1)).unwrap();
        let read = logits(&mut session).0;
        (read, run(&mut session, greedy(20)))
    };
    let ((read, said), (other, answer)) = (talk(&Executor::Cpu), talk(executor));
    // The weights of thousands of keys are sums of their own.
    let (apart, bound) = (worst(&read, &other), 2.0 * tiny.rounding());
    assert!(apart <= bound, "{} on {}: {apart:e}, not {bound:e}", tiny.architecture, executor.name());
    assert_eq!(drawn(&said), drawn(&answer), "{}", tiny.architecture);
}

#[test]
fn a_prompt_of_8192_tokens_and_the_answer_to_it_are_the_same_on_both_executors() {
    same_over_8192_tokens(&narrow(Tiny::gemma3()), &gpu());
}

#[test]
fn a_prompt_of_8192_tokens_over_shared_keys_is_the_same_within_webgpus_limits() {
    same_over_8192_tokens(&gemma4(), &webgpu());
}

/// How many times as long the last quarter of a prompt of half that length takes as the first.
fn last_to_first(session: &mut Session) -> f64 {
    session.reset();
    let mut read = |tokens: usize| {
        session.feed(&ids(tokens, 2)).unwrap();
        let began = Instant::now();
        session.prefill(None).unwrap();
        began.elapsed().as_secs_f64()
    };
    let (first, _, last) = (read(LONG / 8), read(LONG / 4), read(LONG / 8));
    last / first
}

#[test]
fn the_last_quarter_of_a_prompt_takes_no_longer_than_its_keys_explain() {
    // Windows see as many keys at the end as at the start. What sees everything sees seven times as many in the last quarter.
    let windowed = Tiny { layers: 2, ..narrow(Tiny::gemma3()) };
    for (tiny, keys) in [(windowed, 1.0), (gemma4(), 7.0)] {
        let mut session = tiny.on(&gpu()).session(options()).unwrap();
        // Other work on the machine may slow any one of them.
        let ratios: Vec<f64> = (0..6).map(|_| last_to_first(&mut session)).take_while(|ratio| *ratio > 1.5 * keys).collect();
        assert!(ratios.len() < 6, "{}: the last quarter takes {ratios:?} times as long as the first", tiny.architecture);
    }
}
