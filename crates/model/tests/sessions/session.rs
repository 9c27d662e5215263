//! Sessions: limits, stops, end tokens, kept prefixes, seeds and log-probabilities.

use crate::common::{self, Tiny, both, drawn, exact, gpu, greedy, ids, run, text};
use kernels::Executor;
use model::chat::{Message, RenderOptions};
use model::{Error, Finish, GenerateOptions, Model, Sampling, Session};

fn session(model: &Model, prompt: &[u32]) -> Session {
    let mut session = model.session(exact(16)).unwrap();
    session.feed(prompt).unwrap();
    session
}

/// Runs a generation to its end: its ids, text and finish.
fn finish(session: &mut Session, options: GenerateOptions) -> (Vec<u32>, String, Finish) {
    let mut tokens = session.generate_with(options).unwrap();
    let mut got = vec![];
    for token in &mut tokens {
        got.push(token.unwrap());
    }
    (drawn(&got), text(&got), tokens.finish().unwrap().clone())
}

#[test]
fn a_context_longer_than_the_models_or_of_nothing_is_refused() {
    let model = Tiny { context: 100, ..Tiny::qwen3() }.on(&Executor::Cpu);
    for asked in [0, 101, u32::MAX] {
        let error = model.session(exact(16).context(asked)).err().unwrap();
        assert!(matches!(error, Error::Context { limit: 100, .. }), "{error}");
    }
    assert_eq!(model.session(exact(16)).unwrap().context(), 100);
    assert_eq!(model.session(exact(16).context(1)).unwrap().context(), 1);
}

#[test]
fn feeding_past_the_context_or_the_vocabulary_changes_nothing() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut session = model.session(exact(16).context(40)).unwrap();
        assert!(matches!(session.generate_with(greedy(1)).err().unwrap(), Error::NothingFed));
        session.feed(&ids(39, 1)).unwrap();
        assert!(matches!(session.feed(&[1, 2]).unwrap_err(), Error::ContextOverflow { needed: 41, limit: 40 }));
        assert!(matches!(session.feed(&[300]).unwrap_err(), Error::TokenId { id: 300, vocabulary: 300 }));
        assert!(matches!(session.set_prompt(&ids(41, 2)).unwrap_err(), Error::ContextOverflow { .. }));
        assert_eq!(session.tokens(), ids(39, 1));
        assert_eq!(finish(&mut session, greedy(5)).2, Finish::Context);
        assert_eq!(session.tokens().len(), 40);
        let error = session.generate_with(greedy(1)).err().unwrap();
        assert!(matches!(error, Error::ContextOverflow { needed: 41, limit: 40 }), "{error}");
    }
}

#[test]
fn another_context_keeps_the_tokens_and_one_that_is_too_short_changes_nothing() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut session = model.session(exact(16).context(30)).unwrap();
        session.feed(&ids(20, 1)).unwrap();
        session.set_note("kept");
        let first = drawn(&run(&mut session, greedy(4)));
        let error = session.reopen(exact(16).context(23)).unwrap_err();
        assert!(matches!(error, Error::ContextOverflow { needed: 24, limit: 23 }), "{error}");
        assert!(matches!(session.reopen(exact(16).context(0)).unwrap_err(), Error::Context { .. }));
        assert_eq!((session.context(), session.tokens().len()), (30, 24));
        session.reopen(exact(16).context(64)).unwrap();
        assert_eq!((session.context(), session.tokens().len(), session.evaluated()), (64, 24, 0));
        assert_eq!((session.note(), session.sampling()), (&b"kept"[..], Some(&Sampling::greedy())));
        let rest = drawn(&run(&mut session, greedy(20)));
        let mut whole = model.session(exact(16).context(64)).unwrap();
        whole.feed(&ids(20, 1)).unwrap();
        assert_eq!([first, rest].concat(), drawn(&run(&mut whole, greedy(24))), "{}", executor.kind());
    }
}

#[test]
fn a_full_context_ends_the_answer_and_every_token_stays() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let free = drawn(&run(&mut session(&model, &ids(30, 1)), greedy(12)));
        let mut short = model.session(exact(16).context(40)).unwrap();
        short.feed(&ids(30, 1)).unwrap();
        let (got, _, ended) = finish(&mut short, greedy(100));
        assert_eq!((&got[..], ended), (&free[..10], Finish::Context));
        assert_eq!(short.tokens(), [&ids(30, 1), &got[..]].concat());
    }
}

#[test]
fn limits_of_zero_and_one_token_end_by_length() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let mut session = session(&model, &ids(5, 1));
        assert_eq!(finish(&mut session, greedy(0)), (vec![], String::new(), Finish::Length));
        let (one, _, ended) = finish(&mut session, greedy(1));
        assert_eq!((one.len(), ended), (1, Finish::Length));
    }
}

#[test]
fn a_stop_string_across_tokens_ends_the_text_before_it() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let whole = text(&run(&mut session(&model, &ids(20, 9)), greedy(40)));
        assert!(whole.is_ascii() && whole.len() >= 40, "{whole:?}");
        let stop = whole[17..23].to_string();
        let at = whole.find(&stop).unwrap();
        let mut stopped = session(&model, &ids(20, 9));
        let options = greedy(40).stops(vec!["never said".into(), stop.clone(), String::new()]);
        let (_, shown, ended) = finish(&mut stopped, options);
        assert_eq!((shown.as_str(), ended), (&whole[..at], Finish::Stop(stop)));
        // Steps that ran ahead of the stop are dropped, so generation continues with the same text.
        let rest = text(&run(&mut stopped, greedy(40)));
        let said = model.tokenizer().decode(&stopped.tokens()[20..]);
        assert!(said.starts_with(&whole) && said.ends_with(&rest), "{said:?} and {whole:?}");
    }
}

#[test]
fn an_end_token_ends_the_answer_unless_it_is_ignored() {
    for executor in both() {
        let tiny = Tiny::qwen3();
        let free = drawn(&run(&mut session(&tiny.on(&executor), &ids(20, 9)), greedy(30)));
        // The same weights in a file whose end token is the tenth token of the answer.
        let at = free.iter().position(|id| id == &free[9]).unwrap();
        let file = tiny.edited(tiny.metadata().set("tokenizer.ggml.eos_token_id", free[9]), |_, _| true);
        let model = common::open(&file).unwrap().on(executor.clone()).unwrap();
        let mut ended = session(&model, &ids(20, 9));
        let (got, _, finish) = finish(&mut ended, greedy(30).ignore_end(false));
        assert_eq!((&got[..], finish), (&free[..=at], Finish::End));
        assert_eq!(ended.tokens().len(), 20 + at + 1);
        assert_eq!(drawn(&run(&mut session(&model, &ids(20, 9)), greedy(30))), free);
    }
}

#[test]
fn a_prompt_that_shares_a_prefix_gives_what_a_fresh_session_gives() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let first = ids(60, 1);
        let mut kept = session(&model, &first);
        run(&mut kept, greedy(8));
        let longer = [&kept.tokens()[..66], &ids(10, 2)].concat();
        let prompts =
            [[&first[..33], &ids(20, 3)].concat(), longer, first[..7].to_vec(), first.clone(), first[..1].to_vec()];
        for prompt in prompts {
            kept.set_prompt(&prompt).unwrap();
            assert_eq!(kept.tokens(), prompt);
            let fresh = run(&mut session(&model, &prompt), greedy(8));
            assert_eq!(
                drawn(&run(&mut kept, greedy(8))),
                drawn(&fresh),
                "{} tokens on {}",
                prompt.len(),
                executor.kind()
            );
        }
    }
}

#[test]
fn one_seed_gives_one_text_on_both_executors() {
    let sampling = |seed| Sampling {
        temperature: 0.9,
        top_k: 60,
        top_p: 0.9,
        min_p: 0.02,
        repetition_penalty: 1.2,
        frequency_penalty: 0.1,
        presence_penalty: 0.1,
        seed,
        ..Sampling::default()
    };
    for tiny in [Tiny::qwen3(), Tiny::qwen2()] {
        let of = |executor: &Executor, seed| {
            let options = greedy(40).sampling(sampling(seed));
            run(&mut session(&tiny.on(executor), &ids(20, 7)), options)
        };
        let (cpu, gpu) = (of(&Executor::Cpu, 3), of(&gpu(), 3));
        assert_eq!(drawn(&cpu), drawn(&gpu));
        for (a, b) in cpu.iter().zip(&gpu) {
            assert_eq!(a.text, b.text);
            assert!((a.log_prob - b.log_prob).abs() <= 5e-5, "{} and {}", a.log_prob, b.log_prob);
        }
        assert_ne!(drawn(&of(&Executor::Cpu, 4)), drawn(&cpu), "another seed, another text");
    }
}

#[test]
fn log_probabilities_are_those_of_the_logits() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let sampling = Sampling { temperature: 1.5, repetition_penalty: 1.3, seed: 8, ..Sampling::default() };
        let mut spoken = session(&model, &ids(10, 8));
        let tokens = run(&mut spoken, greedy(20).sampling(sampling));
        let mut again = session(&model, spoken.tokens());
        let logits = common::logits(&mut again).0;
        for (n, token) in tokens.iter().enumerate() {
            let row = &logits[(9 + n) * common::VOCABULARY as usize..][..common::VOCABULARY as usize];
            let expected = cpu_ref::log_prob(row, token.id);
            assert!((token.log_prob - expected).abs() <= 1e-5, "token {n}: {} for {expected}", token.log_prob);
        }
    }
}

#[test]
fn a_chat_is_read_from_the_files_template() {
    let model = Tiny::qwen3().on(&Executor::Cpu);
    let options = RenderOptions::default().add_generation_prompt(true);
    let prompt = model.template().encode(model.tokenizer(), &[Message::user("badebadi")], &options).unwrap();
    let mut chat = model.session(exact(16)).unwrap();
    chat.set_prompt(&prompt).unwrap();
    let answer = text(&run(&mut chat, greedy(10)));
    assert!(answer.len() >= 10 && answer.is_ascii(), "{answer:?}");
    assert!(
        chat.generate_raw(
            "badebadi",
            model::tokenizer::Special::Text,
            GenerateOptions::default().sampling(Sampling::greedy())
        )
        .unwrap()
        .next()
        .unwrap()
        .is_ok()
    );
}

#[test]
fn the_plan_of_the_last_step_has_the_taps_that_were_asked_for() {
    for executor in both() {
        let model = Tiny::qwen3().on(&executor);
        let options = exact(16).plan(kernels::PlanOptions::default().taps(vec!["attn_norm".to_string()]));
        let mut session = model.session(options).unwrap();
        assert!(session.plan().is_none(), "no step yet");
        session.feed(&ids(5, 1)).unwrap();
        session.prefill(None).unwrap();
        let planned = session.plan().expect("a step has run").planned();
        // The CPU has no plan. A GPU reads back the drawn id, and one tap for each of two layers.
        assert_eq!(planned.map(|planned| planned.read_back.len()), matches!(executor, Executor::Gpu(_)).then_some(3));
        assert_eq!(session.states().capacity() as usize, session.context().min(1024));
    }
}
