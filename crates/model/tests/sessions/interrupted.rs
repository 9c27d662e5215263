//! Interrupted generations and prompts: evaluated tokens stay, and the session continues normally.

use crate::common::{Tiny, both, drawn, exact, greedy, ids, run};
use kernels::Executor;
use model::{Error, Finish, Model, Session};
use std::sync::atomic::Ordering;
use std::sync::mpsc;

fn session(model: &Model, prompt: &[u32]) -> Session {
    let mut session = model.session(exact(16)).unwrap();
    session.feed(prompt).unwrap();
    session
}

#[test]
fn an_answer_dropped_early_leaves_the_session_at_the_last_token_read() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let free = drawn(&run(&mut session(&model, &ids(20, 4)), greedy(20)));
        let mut dropped = session(&model, &ids(20, 4));
        let read: Vec<u32> = dropped.generate_with(greedy(20)).unwrap().take(3).map(|t| t.unwrap().id).collect();
        assert_eq!(dropped.tokens(), [&ids(20, 4), &read[..]].concat());
        assert_eq!(drawn(&run(&mut dropped, greedy(17))), free[3..]);
        dropped.rollback(25);
        assert_eq!(drawn(&run(&mut dropped, greedy(15))), free[5..]);
        dropped.reset();
        dropped.feed(&ids(20, 4)).unwrap();
        assert_eq!(drawn(&run(&mut dropped, greedy(20))), free);
        // Tokens fed next overwrite the positions of steps that ran ahead.
        dropped.rollback(20);
        let read: Vec<u32> = dropped.generate_with(greedy(20)).unwrap().take(3).map(|t| t.unwrap().id).collect();
        dropped.feed(&ids(9, 5)).unwrap();
        let prompt = [&ids(20, 4)[..], &read, &ids(9, 5)].concat();
        assert_eq!(drawn(&run(&mut dropped, greedy(6))), drawn(&run(&mut session(&model, &prompt), greedy(6))));
    }
}

#[test]
fn cancelling_from_another_thread_loses_nothing() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut cancelled = session(&model, &ids(20, 5));
        let flag = cancelled.cancel_flag();
        let (spoke, hears) = mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            hears.recv().unwrap();
            flag.store(true, Ordering::Relaxed);
        });
        let mut tokens = cancelled.generate_with(greedy(4000)).unwrap();
        let mut read = vec![];
        for token in &mut tokens {
            read.push(token.unwrap().id);
            let _ = spoke.send(());
        }
        assert_eq!(tokens.finish(), Some(&Finish::Cancelled));
        drop(tokens);
        other.join().unwrap();
        assert!(!read.is_empty() && read.len() < 4000, "{} tokens", read.len());
        assert_eq!(cancelled.tokens(), [&ids(20, 5), &read[..]].concat());
        let more = drawn(&run(&mut cancelled, greedy(5)));
        let free = drawn(&run(&mut session(&model, &ids(20, 5)), greedy(read.len() + 5)));
        assert_eq!([read, more].concat(), free);
    }
}

#[test]
fn cancelling_a_prompt_keeps_the_chunks_that_were_read() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut cancelled = session(&model, &ids(200, 6));
        let flag = cancelled.cancel_flag();
        let mut tokens = cancelled.generate_with(greedy(5)).unwrap().with_progress(move |progress| {
            assert_eq!(progress.total, 199);
            flag.store(progress.done >= 48, Ordering::Relaxed);
        });
        assert!(tokens.next().is_none());
        assert_eq!(tokens.finish(), Some(&Finish::Cancelled));
        drop(tokens);
        let flag = cancelled.cancel_flag();
        let stop = move |_: model::Progress| flag.store(true, Ordering::Relaxed);
        assert!(matches!(cancelled.prefill(Some(&stop)).unwrap_err(), Error::Cancelled));
        assert_eq!(cancelled.tokens(), ids(200, 6));
        let seen = std::sync::Mutex::new(vec![]);
        cancelled.prefill(Some(&|progress| seen.lock().unwrap().push((progress.done, progress.total)))).unwrap();
        // Three chunks and one more were read. On a GPU another chunk had begun at each stop.
        let left: u64 = if matches!(executor, Executor::Cpu) { 200 - 64 } else { 200 - 96 };
        assert_eq!(
            seen.into_inner().unwrap(),
            (1..=left.div_ceil(16)).map(|n| ((16 * n).min(left), left)).collect::<Vec<_>>()
        );
        let free = drawn(&run(&mut session(&model, &ids(200, 6)), greedy(5)));
        assert_eq!(drawn(&run(&mut cancelled, greedy(5))), free);
    }
}
