//! Full contexts that shift: the result equals a new session with the remaining tokens.

use crate::common::{self, Tiny, both, drawn, exact, greedy, ids, run};
use model::{Error, Finish, Model, Sampling, Session};

/// Twenty positions, four of them kept: halves of eight.
fn shifting(model: &Model) -> Session {
    model.session(exact(16).context(20).shift(Some(4))).unwrap()
}

fn alone(model: &Model, tokens: &[u32], n: usize) -> Vec<u32> {
    let mut session = model.session(exact(16)).unwrap();
    session.feed(tokens).unwrap();
    drawn(&run(&mut session, greedy(n)))
}

#[test]
fn an_answer_goes_on_over_what_is_kept_and_the_later_half() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut session = shifting(&model);
        session.feed(&ids(15, 1)).unwrap();
        let mut held = ids(15, 1);
        let mut expected = vec![];
        for _ in 0..30 {
            if held.len() == 20 {
                held.drain(4..12);
            }
            let next = alone(&model, &held, 1)[0];
            held.push(next);
            expected.push(next);
        }
        let mut tokens = session.generate_with(greedy(30)).unwrap();
        let got: Vec<u32> = tokens.by_ref().map(|token| token.unwrap().id).collect();
        assert_eq!((got, tokens.finish()), (expected, Some(&Finish::Length)), "{}", executor.kind());
        drop(tokens);
        // 45 tokens: the context was full before the 6th, the 14th, the 22nd and the 30th.
        assert_eq!((session.tokens(), session.dropped()), (&held[..], 32));
        session.reset();
        assert_eq!(session.dropped(), 0);
    }
}

#[test]
fn prompts_that_outgrow_the_context_lose_the_same_tokens_and_keep_what_is_evaluated() {
    let model = Tiny::qwen3().on(&kernels::Executor::Cpu);
    let (mut session, prompt) = (shifting(&model), ids(40, 2));
    session.set_prompt(&prompt[..30]).unwrap();
    let cut = |tokens: &[u32], out: usize| [&tokens[..4], &tokens[4 + out..]].concat();
    assert_eq!((session.tokens(), session.dropped()), (&cut(&prompt[..30], 16)[..], 16));
    assert_eq!(drawn(&run(&mut session, greedy(2))), alone(&model, &cut(&prompt[..30], 16), 2));
    session.set_prompt(&prompt[..34]).unwrap();
    assert_eq!((session.tokens().len(), session.evaluated()), (18, 14), "cut at the same place");
    session.feed(&prompt[34..]).unwrap();
    assert_eq!((session.tokens(), session.dropped()), (&cut(&prompt, 24)[..], 24));
    let before = session.tokens().to_vec();
    assert!(matches!(session.feed(&[999; 30]).unwrap_err(), Error::TokenId { id: 999, .. }));
    assert_eq!((session.tokens(), session.dropped()), (&before[..], 24));
}

#[test]
fn a_position_that_comes_again_draws_by_other_numbers() {
    // All logits are equal, so the samples depend on the random generator only.
    let flat = Tiny::qwen3();
    let file = flat.edited(flat.metadata(), |name, spec| {
        if name == "output.weight" {
            spec.values.fill(0.0);
        }
        true
    });
    let model = common::open(&file).unwrap().on(kernels::Executor::Cpu).unwrap();
    let mut session = shifting(&model);
    session.feed(&ids(12, 1)).unwrap();
    let sampling = Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, seed: 3, ..Sampling::default() };
    let got = drawn(&run(&mut session, greedy(24).sampling(sampling)));
    assert_ne!(got[..8], got[8..16], "positions 12 to 19, twice");
    assert_ne!(got[8..16], got[16..]);
}

#[test]
fn a_context_too_small_to_shift_ends_the_answer() {
    let model = Tiny::qwen3().on(&kernels::Executor::Cpu);
    let mut session = model.session(exact(16).context(1).shift(Some(0))).unwrap();
    session.feed(&[5]).unwrap();
    assert!(matches!(session.generate_with(greedy(3)).err().unwrap(), Error::ContextOverflow { needed: 2, limit: 1 }));
    let mut session = model.session(exact(16).context(2).shift(Some(9))).unwrap();
    session.feed(&[5]).unwrap();
    assert_eq!(run(&mut session, greedy(5)).len(), 5, "two positions suffice");
}
