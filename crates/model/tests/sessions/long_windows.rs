//! Prompts of thousands of tokens with sliding windows: both executors agree, and time grows only
//! with the arithmetic.

use crate::common::{Tiny, drawn, exact, gpu, greedy, ids, logits, run, webgpu, worst};
use kernels::Executor;
use model::{Session, SessionOptions};
use std::time::Instant;

/// Five chunks, and many turns of the rings. `long` and `far` have longer contexts.
const LONG: usize = 2560;

fn gemma4() -> Tiny {
    Tiny { heads: 1, ..Tiny::gemma4_short().narrowed(16384) }
}

fn options() -> SessionOptions {
    exact(512).context(LONG as u32 + 100)
}

fn same_over_a_long_prompt(tiny: &Tiny, executor: &Executor) {
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
fn a_long_prompt_and_the_answer_to_it_are_the_same_on_both_executors() {
    same_over_a_long_prompt(&Tiny::gemma3().narrowed(16384), &gpu());
}

#[test]
fn a_long_prompt_over_shared_keys_is_the_same_within_webgpus_limits() {
    same_over_a_long_prompt(&gemma4(), &webgpu());
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
    let windowed = Tiny { layers: 2, ..Tiny::gemma3().narrowed(16384) };
    for (tiny, keys) in [(windowed, 1.0), (gemma4(), 7.0)] {
        let mut session = tiny.on(&gpu()).session(options()).unwrap();
        // Other work on the machine may slow a single measurement.
        let ratios: Vec<f64> =
            (0..6).map(|_| last_to_first(&mut session)).take_while(|ratio| *ratio > 1.5 * keys).collect();
        assert!(
            ratios.len() < 6,
            "{}: the last quarter takes {ratios:?} times as long as the first",
            tiny.architecture
        );
    }
}
