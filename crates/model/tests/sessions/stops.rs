//! Stops: texts and names of control tokens that end an answer, in sessions and in batches.

use crate::common::{self, Tiny, both, drawn, exact, greedy, ids, run, text};
use gguf::GgufBuilder;
use kernels::Executor;
use model::tokenizer::Tokenizer;
use model::{AnswerText, Finish, GenerateOptions, Model, Sampling, Session};
use std::sync::Arc;

const NAME: &str = "<|stop|>";
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;

/// The metadata of the tiny model, whose token `id` has this name and type. Text is never merged.
fn named(tiny: &Tiny, id: u32, kind: i32) -> GgufBuilder<'static> {
    let file = gguf::Gguf::from_bytes(tiny.metadata().to_bytes().unwrap()).unwrap();
    let mut tokens: Vec<String> = file.get("tokenizer.ggml.tokens").unwrap();
    let mut kinds: Vec<i32> = file.get("tokenizer.ggml.token_type").unwrap();
    (tokens[id as usize], kinds[id as usize]) = (NAME.to_string(), kind);
    let metadata = tiny.metadata().set("tokenizer.ggml.tokens", tokens).set("tokenizer.ggml.token_type", kinds);
    metadata.set("tokenizer.ggml.merges", Vec::<String>::new())
}

/// The tiny model, which draws `ids` greedily, with the token at `at` named: the model, the ids
/// before and with the first such token, and their texts.
struct Named {
    model: Model,
    free: Vec<u32>,
    at: usize,
}

impl Named {
    fn new(executor: &Executor, kind: i32) -> Self {
        let tiny = Tiny::qwen3();
        let free = drawn(&run(&mut session(&tiny.on(executor)), greedy(30)));
        let at = free.iter().position(|id| id == &free[9]).unwrap();
        let file = tiny.edited(named(&tiny, free[9], kind), |_, _| true);
        Self { model: common::open(&file).unwrap().on(executor.clone()).unwrap(), free, at }
    }

    fn before(&self) -> String {
        self.model.tokenizer().decode(&self.free[..self.at])
    }
}

fn session(model: &Model) -> Session {
    let mut session = model.session(exact(16)).unwrap();
    session.feed(&ids(20, 9)).unwrap();
    session
}

fn stops(all: &[&str]) -> GenerateOptions {
    greedy(30).stops(all.iter().map(ToString::to_string).collect())
}

/// Runs a generation to its end: its ids, text and finish.
fn finish(session: &mut Session, options: GenerateOptions) -> (Vec<u32>, String, Finish) {
    let mut tokens = session.generate_with(options).unwrap();
    let got: Vec<_> = (&mut tokens).map(Result::unwrap).collect();
    (drawn(&got), text(&got), tokens.finish().unwrap().clone())
}

#[test]
fn a_stop_that_is_the_name_of_a_control_token_ends_the_answer_at_that_token() {
    for executor in both() {
        let of = Named::new(&executor, CONTROL);
        let expected = (of.free[..=of.at].to_vec(), of.before(), Finish::Stop(NAME.to_string()));
        for options in
            [stops(&[NAME]), stops(&["never said", NAME]).show_control(true), stops(&[NAME]).shown(vec![of.free[9]])]
        {
            let mut stopped = session(&of.model);
            assert_eq!(finish(&mut stopped, options), expected);
            assert_eq!(stopped.tokens().len(), 20 + of.at + 1);
            let rest = drawn(&run(&mut stopped, greedy(29 - of.at)));
            assert_eq!(rest, of.free[of.at + 1..], "steps that ran ahead of the stop are dropped");
        }
    }
}

#[test]
fn a_stop_that_names_an_end_token_is_a_stop_and_without_it_the_answer_ends() {
    let (tiny, executor) = (Tiny::qwen3(), Executor::Cpu);
    let Named { free, at, .. } = Named::new(&executor, CONTROL);
    let metadata = named(&tiny, free[9], CONTROL).set("tokenizer.ggml.eos_token_id", free[9]);
    let model = common::open(&tiny.edited(metadata, |_, _| true)).unwrap().on(executor).unwrap();
    let (ids, _, ended) = finish(&mut session(&model), stops(&[NAME]).ignore_end(false));
    assert_eq!((ids.len(), ended), (at + 1, Finish::Stop(NAME.to_string())));
    let (ids, _, ended) = finish(&mut session(&model), stops(&[]).ignore_end(false));
    assert_eq!((ids.len(), ended), (at + 1, Finish::End));
}

#[test]
fn a_name_inside_a_longer_stop_is_text() {
    let of = Named::new(&Executor::Cpu, CONTROL);
    let long = format!("{NAME}{}", of.model.tokenizer().decode(&of.free[of.at + 1..=of.at + 1]));
    let (ids, _, ended) = finish(&mut session(&of.model), stops(&[&long]));
    assert_eq!((&ids, ended), (&of.free, Finish::Length), "the token is not shown, so its name is not in the text");
    let (ids, shown, ended) = finish(&mut session(&of.model), stops(&[&long]).show_control(true));
    assert_eq!((&ids[..], shown, ended), (&of.free[..=of.at + 1], of.before(), Finish::Stop(long)));
}

#[test]
fn the_name_of_a_user_defined_token_ends_the_answer_too() {
    for executor in both() {
        let of = Named::new(&executor, USER_DEFINED);
        let (ids, shown, ended) = finish(&mut session(&of.model), stops(&[NAME]));
        assert_eq!((&ids[..], shown, ended), (&of.free[..=of.at], of.before(), Finish::Stop(NAME.to_string())));
    }
}

/// A tokenizer whose token 255 is a control token.
fn tokenizer() -> Arc<Tokenizer> {
    Arc::clone(
        common::open(&Tiny::qwen3().edited(named(&Tiny::qwen3(), 255, CONTROL), |_, _| true)).unwrap().tokenizer(),
    )
}

/// Reads the bytes of `text`, each as one token; the byte 255 stands for the control token.
fn read(options: &GenerateOptions, bytes: &[u8]) -> (Vec<String>, Option<Finish>) {
    let (mut answer, mut parts) = (AnswerText::new(&tokenizer(), options), vec![]);
    for &byte in bytes {
        let (part, finish) = answer.push(byte.into());
        parts.push(part);
        if finish.is_some() {
            return (parts, finish);
        }
    }
    let (part, finish) = answer.finish();
    parts.push(part);
    (parts, finish)
}

#[test]
fn text_that_was_held_back_is_shown_before_a_control_token_that_stops() {
    let (parts, finish) = read(&stops(&["abc", NAME]), b"xab\xff");
    assert_eq!((parts, finish), (["x", "", "", "ab"].map(String::from).to_vec(), Some(Finish::Stop(NAME.to_string()))));
    // A character is incomplete, and the stop that could follow it is held back.
    let (parts, finish) = read(&stops(&["\u{fffd}", NAME]), b"x\xc3\xff");
    assert_eq!((parts.concat(), finish), ("x".to_string(), Some(Finish::Stop("\u{fffd}".to_string()))));
}

#[test]
fn a_stop_of_several_characters_of_several_bytes_is_found_across_tokens() {
    let (parts, finish) = read(&stops(&["é世"]), "caèé世界".as_bytes());
    assert_eq!((parts.concat().as_str(), finish), ("caè", Some(Finish::Stop("é世".to_string()))));
    let (parts, finish) = read(&stops(&["é世"]), "caé丗".as_bytes());
    assert_eq!((parts.concat().as_str(), finish), ("caé丗", None));
}

#[test]
fn the_spelled_name_of_a_control_token_is_a_stop_too() {
    let (parts, finish) = read(&stops(&[NAME]), b"x<|stop|>y");
    assert_eq!((parts.concat().as_str(), finish), ("x", Some(Finish::Stop(NAME.to_string()))));
    let (parts, finish) = read(&stops(&["<|stop", "<|stop|>>"]), b"x\xffy");
    assert_eq!((parts.concat().as_str(), finish), ("xy", None), "part of a name, or more than it, is text");
}

#[test]
fn an_answer_of_a_batch_ends_where_that_of_a_session_does() {
    for executor in both() {
        let of = Named::new(&executor, CONTROL);
        let prompts = [ids(20, 9), ids(7, 3)];
        let mut batch = of.model.batch(exact(16).sequences(2)).unwrap();
        let mut answers = vec![];
        for (n, prompt) in (0..).zip(&prompts) {
            batch.feed(n, prompt).unwrap();
            answers.push((AnswerText::new(of.model.tokenizer(), &stops(&[NAME])), String::new(), None));
        }
        while answers.iter().any(|(_, _, finish)| finish.is_none()) {
            for draw in batch.step(&[Sampling::greedy()]).unwrap() {
                let (answer, text, finish) = &mut answers[draw.sequence as usize];
                let (more, ended) = answer.push(draw.id);
                text.push_str(&more);
                if ended.is_some() {
                    *finish = ended;
                    batch.release(draw.sequence);
                }
            }
        }
        assert_eq!(answers[0].2, Some(Finish::Stop(NAME.to_string())));
        for ((_, text, ended), prompt) in answers.iter().zip(&prompts) {
            let mut session = of.model.session(exact(16)).unwrap();
            session.feed(prompt).unwrap();
            let (_, alone, finish) = finish(&mut session, stops(&[NAME]));
            assert_eq!((text, ended.as_ref()), (&alone, Some(&finish)));
        }
    }
}
