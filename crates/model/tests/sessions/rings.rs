//! Sliding windows in rings: results equal those of caches with all positions; only the memory
//! differs.

use crate::common::{self, Tiny, VOCABULARY, both, drawn, exact, gpu, greedy, ids, logits, run, webgpu, worst};
use kernels::Executor;
use model::{KvType, Model, Sampling, Session, SessionOptions};

/// With small chunks, sessions of these models have rings of 128 positions.
fn windowed() -> [Tiny; 2] {
    [Tiny::gemma3(), Tiny::gemma4_short()].map(|tiny| Tiny { head_dim: 32, ..tiny.narrowed(2048) })
}

fn fed(model: &Model, options: SessionOptions, tokens: &[u32]) -> Session {
    let mut session = model.session(options).unwrap();
    session.feed(tokens).unwrap();
    session
}

fn logits_of(model: &Model, options: SessionOptions, tokens: &[u32]) -> Vec<f32> {
    logits(&mut fed(model, options, tokens)).0
}

/// Checks that chunks of every alignment to a ring give the same as one chunk and as single tokens.
fn same_in_chunks(tiny: &Tiny) {
    let tokens = ids(280, 1);
    let (cpu, bound) = (tiny.on(&Executor::Cpu), tiny.rounding());
    // One chunk of all tokens makes a ring that holds them all, so nothing wraps.
    let whole = logits_of(&cpu, exact(512), &tokens);
    let largest = whole.iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
    assert!((2.0..=6.0).contains(&largest), "logits of ordinary size: {largest}");
    for (executor, chunks) in [(gpu(), &[512, 1, 112, 113][..]), (webgpu(), &[7]), (Executor::Cpu, &[1, 113])] {
        let model = tiny.on(&executor);
        for &chunk in chunks {
            let apart = worst(&whole, &logits_of(&model, exact(chunk), &tokens));
            assert!(
                apart <= bound,
                "{} on {} in chunks of {chunk}: {apart:e}, not {bound:e}",
                tiny.architecture,
                executor.kind()
            );
        }
    }
    // A window with one key less gives another result.
    let key = format!("{}.attention.sliding_window", tiny.architecture);
    let narrower = common::open(&tiny.edited(tiny.metadata().set(key, 7_u32), |_, _| true)).unwrap();
    let apart = worst(&whole, &logits_of(&narrower.on(gpu()).unwrap(), exact(512), &tokens));
    assert!(apart > 100.0 * bound, "{}: a key moves logits by {apart:e}", tiny.architecture);
}

#[test]
fn chunks_of_every_alignment_to_rings_change_nothing() {
    same_in_chunks(&windowed()[0]);
}

#[test]
fn chunks_of_every_alignment_to_rings_that_layers_share_change_nothing() {
    same_in_chunks(&windowed()[1]);
}

#[test]
fn a_ring_takes_what_its_window_needs_whatever_the_context() {
    for tiny in windowed() {
        for executor in both() {
            let checked = common::open(&tiny.file()).unwrap().check(&executor).unwrap();
            let options = |context| exact(112).context(context);
            let width = |sliding: bool| -> u64 {
                let caches = checked.summary().caches.iter().filter(|c| c.window.is_some() == sliding);
                caches.map(|c| u64::from(c.width)).sum()
            };
            // Keys and values of full-attention layers and an id, per position. Rings hold 8 + 112
            // + 4 positions, rounded up to whole tiles.
            let bytes = |context: u64| (2 * 4 * width(false) + 4) * context + 2 * 4 * width(true) * 128;
            for context in [256, 2048] {
                assert_eq!(
                    checked.needs(&options(context)).unwrap().kv.0,
                    bytes(u64::from(context)),
                    "{}",
                    tiny.architecture
                );
            }
            let mut session = fed(&tiny.on(&executor), options(1024), &ids(600, 2));
            session.prefill(None).unwrap();
            assert_eq!(session.state_bytes(), bytes(1024), "grown");
        }
    }
}

#[test]
fn rollbacks_within_the_slack_and_beyond_it_are_right_and_only_the_latter_read_again() {
    for tiny in windowed() {
        for executor in both() {
            let model = tiny.on(&executor);
            let tokens = ids(400, 3);
            for (to, kept) in [(279, 279), (278, 0)] {
                let mut session = fed(&model, exact(64), &tokens);
                session.prefill(None).unwrap();
                session.rollback(to);
                // The ring holds positions 272 to 399; the row at 279 attends to 272.
                assert_eq!(session.evaluated(), kept, "{to}");
                let other = ids(60, 4);
                session.feed(&other).unwrap();
                let got = logits(&mut session).0;
                // In one chunk, so nothing wraps.
                let whole = logits_of(&tiny.on(&Executor::Cpu), exact(512), &[&tokens[..to], &other].concat());
                let apart = worst(
                    &whole[whole.len() - 60 * VOCABULARY as usize..],
                    &got[got.len() - 60 * VOCABULARY as usize..],
                );
                assert!(
                    apart <= tiny.rounding(),
                    "{} on {} back to {to}: {apart:e}",
                    tiny.architecture,
                    executor.kind()
                );
            }
        }
    }
}

#[test]
fn a_kept_prefix_a_late_stop_and_a_reset_are_right_over_rings() {
    for tiny in windowed() {
        for executor in both() {
            let model = tiny.on(&executor);
            // In one chunk, whose ring is too long to wrap.
            let alone =
                |prompt: &[u32], n| drawn(&run(&mut fed(&tiny.on(&Executor::Cpu), exact(512), prompt), greedy(n)));
            let prompt = ids(240, 5);
            let mut session = fed(&model, exact(64), &prompt);
            let whole = alone(&prompt, 30);
            // Steps that ran ahead are dropped, before the ring wraps and after.
            let mut got = vec![];
            while got.len() < 30 {
                let take = 1 + got.len() % 5;
                got.extend(session.generate_with(greedy(30 - got.len())).unwrap().take(take).map(|t| t.unwrap().id));
            }
            assert_eq!(got, whole, "{}", executor.kind());
            let changed = [&prompt[..190], &ids(15, 6)].concat();
            session.set_prompt(&changed).unwrap();
            assert_eq!(drawn(&run(&mut session, greedy(9))), alone(&changed, 9));
            session.set_prompt(&[&changed[..200], &[7, 8]].concat()).unwrap();
            assert!(session.evaluated() == 200, "within the slack");
            assert_eq!(drawn(&run(&mut session, greedy(9))), alone(&[&changed[..200], &[7, 8]].concat(), 9));
            session.reset();
            session.feed(&changed).unwrap();
            assert_eq!(drawn(&run(&mut session, greedy(9))), alone(&changed, 9));
        }
    }
}

#[test]
fn sequences_of_a_batch_turn_in_their_rings_each_at_its_own_place() {
    for tiny in windowed() {
        for executor in both() {
            let model = tiny.on(&executor);
            let mut batch = model.batch(exact(16).sequences(4)).unwrap();
            let prompts = [ids(1, 1), ids(126, 2), ids(300, 3), ids(131, 4)];
            (0..4).zip(&prompts).for_each(|(n, prompt)| batch.feed(n, prompt).unwrap());
            for _ in 0..10 {
                batch.step(&[Sampling::greedy()]).unwrap();
            }
            batch.rollback(2, 250);
            batch.rollback(3, 10);
            batch.release(0);
            for _ in 0..6 {
                batch.step(&[Sampling::greedy()]).unwrap();
            }
            // In one chunk, whose ring is too long to wrap.
            let alone =
                |prompt: &[u32], n| drawn(&run(&mut fed(&tiny.on(&Executor::Cpu), exact(512), prompt), greedy(n)));
            assert_eq!(batch.tokens(1)[126..], alone(&prompts[1], 16), "{}", executor.kind());
            assert_eq!(batch.tokens(2)[250..], alone(&prompts[2][..250], 6), "{}", executor.kind());
            assert_eq!(batch.tokens(3)[10..], alone(&prompts[3][..10], 6), "{}", executor.kind());
            assert!(batch.tokens(0).is_empty());
        }
    }
}

#[test]
fn snapshots_and_forks_take_the_live_rows_of_a_ring() {
    for (kv, count) in [(KvType::F32, 2), (KvType::F16, 1), (KvType::Q8_0, 1)] {
        for tiny in windowed().into_iter().take(count) {
            for from in both() {
                let options = |chunk| exact(chunk).kv(kv);
                let mut session = fed(&tiny.on(&from), options(64), &ids(373, 7));
                run(&mut session, greedy(5));
                let mut bytes = vec![];
                session.save(&mut bytes).unwrap();
                let mut fork = session.fork().unwrap();
                // Past position 384, where the ring wraps again.
                let rest = drawn(&run(&mut session, greedy(20)));
                assert_eq!(drawn(&run(&mut fork, greedy(20))), rest);
                for to in both() {
                    // The new session's ring has another length.
                    let mut loaded = tiny.on(&to).session(options(150)).unwrap();
                    loaded.load(&mut &bytes[..]).unwrap();
                    assert_eq!(loaded.evaluated(), 377);
                    loaded.rollback(376);
                    assert_eq!(loaded.evaluated(), 376, "the last row can be read again");
                    loaded.load(&mut &bytes[..]).unwrap();
                    assert_eq!(
                        drawn(&run(&mut loaded, greedy(20))),
                        rest,
                        "{kv:?} from {} to {}",
                        from.kind(),
                        to.kind()
                    );
                    loaded.rollback(370);
                    assert_eq!(loaded.evaluated(), 0, "what was not saved is read again");
                }
            }
        }
    }
}
