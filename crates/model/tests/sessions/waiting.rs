//! The functions that wait, awaited by a caller with an executor of its own.

use crate::common::{Tiny, both, drawn, exact, gpu, greedy, ids, open, run};
use model::{Drawn, Sampling, SessionOptions};
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

/// Polls a future once and drops it. Returns its output if it was ready.
fn once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Runs a future by polling it in a loop, as an executor that never blocks its thread.
fn spin<T>(mut future: Pin<&mut impl Future<Output = T>>) -> T {
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
        std::thread::yield_now();
    }
}

#[test]
fn an_awaited_answer_is_the_blocking_one_and_a_dropped_future_loses_no_token() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let fed = || {
            let mut session = model.session(exact(16)).unwrap();
            session.feed(&ids(20, 4)).unwrap();
            session
        };
        let free = drawn(&run(&mut fed(), greedy(12)));
        let (mut session, mut read, mut dropped) = (fed(), vec![], 0);
        let mut answer = session.generate_with(greedy(12)).unwrap();
        while answer.finish().is_none() {
            // Every other future is dropped while it waits.
            let next = match once(answer.next_async()) {
                Some(next) => next,
                None => {
                    dropped += 1;
                    spin(pin!(answer.next_async()))
                }
            };
            read.extend(next.transpose().unwrap().map(|token| token.id));
        }
        drop(answer);
        assert_eq!(read, free, "{}", executor.kind());
        assert_eq!(session.tokens(), [&ids(20, 4), &free[..]].concat());
        assert_eq!(dropped > 0, matches!(executor, kernels::Executor::Gpu(_)), "{dropped} on {}", executor.kind());
    }
}

#[test]
fn a_batch_whose_step_is_dropped_draws_the_same_tokens() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let batch = || {
            let mut batch = model.batch(exact(16).sequences(2)).unwrap();
            batch.feed(0, &ids(9, 1)).unwrap();
            batch.feed(1, &ids(5, 2)).unwrap();
            batch
        };
        let sampling = [Sampling::greedy()];
        let mut blocking = batch();
        // A step that is computed again may evaluate more rows, so its sums round differently.
        let ids = |drawn: Vec<Drawn>| drawn.iter().map(|draw| (draw.sequence, draw.id)).collect::<Vec<_>>();
        let expected: Vec<_> = (0..6).map(|_| ids(blocking.step(&sampling).unwrap())).collect();
        let mut awaited = batch();
        let step = |_| {
            once(awaited.step_async(&sampling)).unwrap_or_else(|| spin(pin!(awaited.step_async(&sampling)))).unwrap()
        };
        let found: Vec<_> = (0..6).map(step).map(ids).collect();
        assert_eq!(found, expected, "{}", executor.kind());
    }
}

/// A device would stand still if the step that draws were encoded after the prefill has ended.
#[test]
fn the_step_that_draws_is_submitted_before_the_prefill_is_awaited() {
    let executor = gpu();
    let kernels::Executor::Gpu(device) = &executor else { panic!("a GPU executor") };
    let mut session = Tiny::qwen3().on(&executor).session(exact(16)).unwrap();
    session.feed(&ids(33, 4)).unwrap();
    let reports = Mutex::new(vec![]);
    let report = |progress: model::Progress| {
        reports.lock().unwrap().push((progress.done, progress.total, device.submitted()));
    };
    let answer = session.generate_with(greedy(1)).unwrap().with_progress(report);
    assert_eq!(answer.map(Result::unwrap).count(), 1);
    let all = device.submitted();
    // Chunks of 16 rows, and the last row draws. The second chunk is submitted before the first is
    // awaited, too.
    assert_eq!(reports.into_inner().unwrap(), [(16, 32, all - 1), (32, 32, all)]);
}

fn sends<F: Future + Send>(_: F) {}

/// A task of an executor with several threads may await every function that waits.
#[test]
fn futures_move_between_threads() {
    let model = Tiny::qwen3().on(&kernels::Executor::Cpu);
    sends(open(&Tiny::qwen3().file()).unwrap().on_async(kernels::Executor::Cpu, &|_| {}));
    sends(model.session_async(SessionOptions::default()));
    sends(model.batch_async(SessionOptions::default()));
    let mut session = model.session(SessionOptions::default()).unwrap();
    sends(session.prefill_async(None));
    sends(session.logits_async(|_, _, _| {}));
    sends(session.profile_async());
    sends(session.save_async(&mut vec![]));
    sends(session.load_async(&mut &[0_u8][..]));
    sends(session.fork_async());
    session.feed(&[1]).unwrap();
    sends(async { session.generate_with(greedy(1)).expect("a prompt").next_async().await });
    let mut batch = model.batch(SessionOptions::default()).unwrap();
    sends(batch.step_async(&[Sampling::greedy()]));
    sends(batch.profile_async());
}
