//! The GPU against the oracles in a long conversation: past 4,096 positions, in chunks, with a late
//! stop, a rollback and a reset. Then a batch of sequences of different lengths.

use crate::common::{self, Tiny, drawn, exact, gpu, ids, logits, run, text, worst};
use kernels::Executor;
use model::{Drawn, Finish, GenerateOptions, Generated, Model, Sampling, Session};

const LONG: usize = 4060;
/// The largest difference between sums in f32 and in f64.
const BOUND: f32 = 1e-5;

/// The results that are compared.
struct Transcript {
    /// The logits of the long prompt, and of the tokens that replaced its end.
    logits: [Vec<f32>; 2],
    /// The answers before the stop, after the rollback, and after the reset.
    answers: [Vec<Generated>; 3],
    batch: Vec<Drawn>,
}

/// Options for varied text, so that a stop string comes late.
fn speaking(tokens: usize) -> GenerateOptions {
    let sampling = Sampling { temperature: 1.0, top_k: 30, top_p: 1.0, seed: 11, ..Sampling::default() };
    common::greedy(tokens).sampling(sampling)
}

fn talk(model: &Model) -> Transcript {
    let options = || exact(512).context(Some(4200));
    let mut session: Session = model.session(options()).unwrap();
    session.feed(&ids(LONG, 1)).unwrap();
    let read = logits(&mut session).0;
    // The text past 4,096 positions is used to choose a late stop string.
    let whole = text(&run(&mut session, speaking(60)));
    session.rollback(LONG);
    let stop = &whole[whole.len() - 6..];
    assert_eq!(whole.find(stop), Some(whole.len() - 6), "{whole:?}");
    let mut tokens = session.generate_with(speaking(60).stops(vec![stop.to_string()])).unwrap();
    let stopped: Vec<Generated> = tokens.by_ref().map(Result::unwrap).collect();
    assert_eq!(tokens.finish(), Some(&Finish::Stop(stop.to_string())));
    drop(tokens);
    assert!(session.tokens().len() > 4096, "stopped at {}", session.tokens().len());
    session.rollback(LONG - 20);
    session.feed(&ids(100, 2)).unwrap();
    let replaced = logits(&mut session).0;
    let after = run(&mut session, speaking(10));
    session.reset();
    session.feed(&ids(5, 3)).unwrap();
    let anew = run(&mut session, speaking(10));
    let mut batch = model.batch(options().sequences(4)).unwrap();
    for (n, length) in [1, 1500, 300, 1020].into_iter().enumerate() {
        batch.feed(n as u32, &ids(length, n as u64)).unwrap();
    }
    let sampling = speaking(0).sampling;
    let batch = (0..12).flat_map(|_| batch.step(std::slice::from_ref(&sampling)).unwrap()).collect();
    Transcript { logits: [read, replaced], answers: [stopped, after, anew], batch }
}

#[test]
fn a_long_conversation_is_the_same_on_both_executors() {
    let tiny = Tiny::narrow();
    let (cpu, gpu) = (talk(&tiny.on(&Executor::Cpu)), talk(&tiny.on(&gpu())));
    for (a, b) in cpu.logits.iter().zip(&gpu.logits) {
        let apart = worst(a, b);
        assert!(apart <= BOUND, "logits are {apart:e} apart");
    }
    for (a, b) in cpu.answers.iter().zip(&gpu.answers) {
        assert_eq!((drawn(a), text(a)), (drawn(b), text(b)));
        assert!(a.iter().zip(b).all(|(a, b)| (a.log_prob - b.log_prob).abs() <= BOUND));
    }
    assert_eq!((cpu.batch.len(), gpu.batch.len()), (48, 48));
    for (a, b) in cpu.batch.iter().zip(&gpu.batch) {
        assert_eq!((a.sequence, a.id), (b.sequence, b.id));
        assert!((a.log_prob - b.log_prob).abs() <= BOUND, "{a:?} and {b:?}");
    }
}
