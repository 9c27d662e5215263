//! Prompts of 8,192 tokens with sliding windows: both executors agree, and time grows only with the
//! arithmetic.

use crate::common::{Tiny, drawn, exact, gpu, greedy, ids, logits, run, webgpu, worst};
use kernels::Executor;
use model::{Session, SessionOptions};
use std::time::Instant;

const LONG: usize = 8192;

fn narrow(tiny: Tiny) -> Tiny {
    Tiny { embedding: 32, heads: 2, kv_heads: 1, head_dim: 16, feed_forward: 32, context: 16384, ..tiny }
}

/// A sliding-window layer, a full-attention layer, and a sliding-window layer that shares the first
/// one's keys.
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
    // The softmax weights of thousands of keys add a second rounding error, so the bound is
    // doubled.
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

/// The time of the last quarter of a prompt divided by the time of the first, for a prompt of half
/// that length.
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
    // With a window, all quarters have as many keys. With full attention, the last quarter has
    // seven times as many as the first.
    let windowed = Tiny { layers: 2, ..narrow(Tiny::gemma3()) };
    for (tiny, keys) in [(windowed, 1.0), (gemma4(), 7.0)] {
        let mut session = tiny.on(&gpu()).session(options()).unwrap();
        // Other work on the machine may slow a single measurement.
        let ratios: Vec<f64> = (0..6).map(|_| last_to_first(&mut session)).take_while(|ratio| *ratio > 1.5 * keys).collect();
        assert!(ratios.len() < 6, "{}: the last quarter takes {ratios:?} times as long as the first", tiny.architecture);
    }
}
