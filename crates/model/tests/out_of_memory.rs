//! Memory that runs out in the middle of a conversation, on the CPU and on a device: an error,
//! after which the session goes on.
#![cfg(target_os = "linux")]

mod common;

use common::{Tiny, both, drawn, exact, greedy, ids, run};
use kernels::{Class, Executor};
use model::{Error, Model, Session, SessionOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Memory that is free while a process starves, for the allocations that may not fail.
const SLACK_BYTES: usize = 12 << 20;

/// Limits the address space of this process and takes what is left, except [`SLACK_BYTES`], while
/// `f` runs.
fn starved<T>(f: impl FnOnce() -> T) -> T {
    const BLOCK_BYTES: usize = 1 << 20;
    let size = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = size.split(' ').next().unwrap().parse().unwrap();
    let before = getrlimit(Resource::As);
    let current = Some((pages * rustix::param::page_size() + 2 * SLACK_BYTES) as u64);
    setrlimit(Resource::As, Rlimit { current, ..before }).unwrap();
    let mut taken: Vec<Vec<u8>> = Vec::with_capacity(1 << 16);
    let block = || {
        let mut block = vec![];
        block.try_reserve_exact(BLOCK_BYTES).is_ok().then_some(block)
    };
    taken.extend(std::iter::from_fn(block));
    taken.truncate(taken.len() - SLACK_BYTES / BLOCK_BYTES);
    let result = f();
    drop(taken);
    setrlimit(Resource::As, before).unwrap();
    result
}

/// A cache of 8 KB per position: room for 2,048 positions does not fit into the slack.
fn wide() -> Tiny {
    Tiny { layers: 1, heads: 4, kv_heads: 4, head_dim: 256, ..Tiny::qwen3() }
}

/// Chunks of 1,024 rows, whose intermediates do not fit into the slack either. The check of the
/// whole need at the start is switched off.
fn session(model: &Model) -> Session {
    let options: SessionOptions = exact(1024).memory_bytes(1 << 40);
    model.session(options).unwrap()
}

/// Answers a prompt.
fn answer(session: &mut Session, prompt: &[u32]) -> Vec<u32> {
    session.feed(prompt).unwrap();
    drawn(&run(session, greedy(5)))
}

/// Answers a prompt of `first` rows, then starves while a prompt of `second` rows is read, then
/// asks again. `what` is the purpose of the allocation that fails.
fn goes_on(executor: &Executor, first: usize, second: usize, what: &str) {
    let model = wide().on(executor);
    let prompt = ids(second, 2);
    let mut free = session(&model);
    answer(&mut free, &ids(first, 1));
    let held = free.tokens().to_vec();
    // A fork has the same cache and no plans yet.
    let mut short = free.fork().unwrap();
    let expected = answer(&mut free, &prompt);
    short.feed(&prompt).unwrap();
    let error = starved(|| short.generate_with(greedy(5)).unwrap().next().unwrap().unwrap_err());
    let Error::Kernels(kernels::Error::OutOfMemory { what: found, bytes }) = &error else { panic!("{error}") };
    assert!(found.contains(what) && *bytes > 2 << 20, "{error}");
    assert_eq!(short.tokens(), [&held[..], &prompt].concat(), "the tokens stay");
    // With less to read it goes on while memory is short.
    short.rollback(held.len());
    let shorter = starved(|| drawn(&run(&mut short, greedy(5))));
    free.rollback(held.len());
    assert_eq!(shorter, drawn(&run(&mut free, greedy(5))), "a shorter turn");
    // With enough memory again, the turn that failed succeeds.
    short.rollback(held.len());
    assert_eq!(answer(&mut short, &prompt), expected, "the turn that failed");
}

/// One test, because the limit is of the whole process.
#[test]
fn a_turn_that_runs_out_of_memory_is_an_error_and_the_next_turn_works() {
    for executor in both() {
        if let Executor::Gpu(device) = &executor
            && device.adapter().class != Class::Software
        {
            // Memory of a real GPU is not address space of this process.
            continue;
        }
        goes_on(&executor, 950, 100, "a state of 2048 positions");
        if let Executor::Gpu(_) = executor {
            goes_on(&executor, 1, 100, "an intermediate");
        }
    }
}
