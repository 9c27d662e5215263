//! The default model answers its held-out questions on both executors, greedily. A broken kernel
//! makes this fail.

use kernels::testing::Switches;
use kernels::{Class, Device, Executor, PlanOptions, Precision};
use model::chat::{Message, RenderOptions};
use model::tokenizer::Special;
use model::{GenerateOptions, Model, ModelFile, Sampling, SessionOptions};
use serde_json::Value;

static MODEL: &[u8] = include_bytes!("../assets/default.gguf");
static QUESTIONS: &str = include_str!("../assets/default-questions.json");
static GREEDY: &str = include_str!("../assets/default-greedy.json");

/// The smallest share of right answers that passes.
const RIGHT: f64 = 0.95;

fn load(executor: Executor) -> Model {
    let file = ModelFile::new(gguf::Gguf::from_bytes(MODEL).expect("the embedded file opens")).expect("and is a model");
    file.on(executor).expect("its weights load")
}

/// The largest number of conversations in the batch: the rows in a tile of a matrix product.
const SLOTS: usize = 64;

/// Rounded activations, as `weft run` uses them on a GPU.
fn fast() -> PlanOptions {
    PlanOptions::plain().precision(Precision::Fast)
}

/// The replies to the questions. Each slot answers one question at a time, and takes the next one
/// when its answer has ended.
fn replies(model: &Model, questions: &[&Value]) -> Vec<String> {
    let prompts: Vec<Vec<u32>> = questions.iter().map(|question| prompt(model, question)).collect();
    let slots = SLOTS.min(questions.len());
    let options = SessionOptions::default().sequences(slots as u32).context(512).plan(PlanOptions::plain());
    let mut batch = model.batch(options).expect("a batch");
    let mut replies = vec![String::new(); questions.len()];
    let mut asked = 0..questions.len();
    let mut at: Vec<Option<usize>> = (0..slots).map(|_| asked.next()).collect();
    for (slot, question) in (0..).zip(&at) {
        question.iter().for_each(|&q| batch.feed(slot, &prompts[q]).expect("the prompt fits"));
    }
    while at.iter().any(Option::is_some) {
        for drawn in batch.step(&[Sampling::greedy()]).expect("a step") {
            let slot = drawn.sequence as usize;
            let question = at[slot].expect("only fed sequences draw");
            let reply = &batch.tokens(drawn.sequence)[prompts[question].len()..];
            if !model.tokenizer().is_end(drawn.id) && reply.len() < 200 {
                continue;
            }
            let text = reply.strip_suffix(&[drawn.id]).filter(|_| model.tokenizer().is_end(drawn.id)).unwrap_or(reply);
            replies[question] = model.tokenizer().decode(text);
            batch.release(drawn.sequence);
            at[slot] = asked.next();
            at[slot].iter().for_each(|&q| batch.feed(drawn.sequence, &prompts[q]).expect("the prompt fits"));
        }
    }
    replies
}

/// The reply to one question, in a session of its own.
fn reply(model: &Model, question: &Value, plan: PlanOptions) -> String {
    let mut session = model.session(SessionOptions::default().plan(plan).context(512)).expect("a session");
    session.feed(&prompt(model, question)).expect("the prompt fits");
    let options = GenerateOptions::default().sampling(Sampling::greedy()).max_tokens(Some(200));
    session.generate_with(options).expect("generates").map(|t| t.expect("a token").text).collect()
}

fn prompt(model: &Model, question: &Value) -> Vec<u32> {
    let messages: Vec<Message> = serde_json::from_value(question["messages"].clone()).expect("messages");
    model.template().encode(model.tokenizer(), &messages, &RenderOptions::default()).expect("the template renders")
}

/// Whether `reply` contains `wanted` as whole words.
fn contains(reply: &str, wanted: &str, case_sensitive: bool) -> bool {
    let fold = |s: &str| if case_sensitive { s.to_string() } else { s.to_lowercase() };
    let (reply, wanted) = (fold(reply), fold(wanted));
    reply.match_indices(&wanted).any(|(at, found)| {
        let before = reply[..at].chars().next_back();
        let after = reply[at + found.len()..].chars().next();
        [before, after].iter().flatten().all(|c| !c.is_ascii_alphanumeric())
    })
}

/// The rule of the question file: the reply contains an accepted answer and no wrong one, and keeps
/// the limits of the system turn.
fn right(question: &Value, reply: &str) -> bool {
    let strings = |key: &str| question[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    let exact = question["case_sensitive"].as_bool().unwrap_or(false);
    let text = |key: &str| question[key].as_str().unwrap_or("");
    strings("answers").any(|a| contains(reply, a, exact))
        && !strings("wrong").any(|a| contains(reply, a, false))
        && reply.split_whitespace().count() as u64 <= question["max_words"].as_u64().unwrap_or(u64::MAX)
        && reply.starts_with(text("starts_with"))
        && reply.trim_end_matches(['.', '!']).ends_with(text("ends_with"))
}

/// Asks every second question from `first` on, so that two tests run in parallel; on a software
/// driver every 80th, unless `WEFT_QUESTIONS=all`. Stories are asked alone: they are long, and
/// a batch would wait for them.
fn answers(executor: Executor, first: usize) {
    let (all, model): (Vec<Value>, _) =
        (serde_json::from_str(QUESTIONS).expect("the questions parse"), load(executor.clone()));
    let is_slow = matches!(&executor, Executor::Gpu(device) if device.adapter().class == Class::Software);
    let every = if is_slow && !asks_all() { 80 } else { 2 };
    let (stories, mut asked): (Vec<&Value>, Vec<&Value>) =
        all.iter().skip(first).step_by(every).partition(|question| question["kind"] == "story");
    let mut replies = replies(&model, &asked);
    replies.extend(stories.iter().map(|story| reply(&model, story, PlanOptions::plain())));
    asked.extend(stories);
    let wrong: Vec<_> =
        asked.iter().zip(&replies).filter(|(q, r)| !right(q, r)).map(|(q, r)| format!("{}: {r}", q["id"])).collect();
    let share = 1.0 - wrong.len() as f64 / asked.len() as f64;
    assert!(share >= RIGHT, "{:.1}% of {} right; wrong:\n{}", 100.0 * share, asked.len(), wrong.join("\n"));
}

#[test]
fn the_cpu_executor_answers_the_held_out_questions() {
    answers(Executor::Cpu, 0);
}

#[test]
fn the_cpu_executor_answers_the_other_held_out_questions() {
    answers(Executor::Cpu, 1);
}

#[test]
fn the_gpu_executor_answers_the_held_out_questions() {
    answers(gpu(), 0);
}

#[test]
fn the_gpu_executor_answers_the_other_held_out_questions() {
    answers(gpu(), 1);
}

fn asks_all() -> bool {
    std::env::var("WEFT_QUESTIONS").is_ok_and(|which| which == "all")
}

fn gpu() -> Executor {
    Executor::Gpu(Device::auto().expect("a Vulkan driver, software or not"))
}

/// Compares rounded activations with f32: the Kullback-Leibler divergence in nats (Kullback and
/// Leibler 1951) over whole conversations, and the answers. A chunk of one row gives every product
/// 8-bit activations; long chunks go through tiles where the device has tensor cores.
/// `WEFT_QUESTIONS=all` asks all questions instead of two.
#[test]
fn rounded_activations_answer_as_well_and_diverge_by_less_than_a_hundredth() {
    let all: Vec<Value> = serde_json::from_str(QUESTIONS).expect("the questions parse");
    let every = if asks_all() { 1 } else { all.len().div_ceil(2) };
    let asked: Vec<&Value> = all.iter().step_by(every).collect();
    let model = load(gpu());
    for chunk in [1, 512] {
        let log_probs = |question: &Value, plan: PlanOptions| {
            let mut ids = prompt(&model, question);
            ids.extend(model.tokenizer().encode(question["answers"][0].as_str().unwrap_or(""), Special::Text).unwrap());
            let options = SessionOptions::default().chunk(chunk).plan(plan).context(512);
            let mut session = model.session(options).expect("a session");
            session.feed(&ids).expect("the conversation fits");
            let mut rows = vec![];
            let width = model.summary().vocabulary as usize;
            session
                .logits(|_, logits, _| rows.extend(logits.chunks_exact(width).flat_map(log_softmax)))
                .expect("logits");
            rows
        };
        let (mut divergence, mut rows) = (0.0, 0);
        for question in &asked {
            let (exact, rounded) = (log_probs(question, PlanOptions::plain()), log_probs(question, fast()));
            divergence += exact.iter().zip(&rounded).map(|(p, q)| p.exp() * (p - q)).sum::<f64>();
            rows += exact.len() / model.summary().vocabulary as usize;
        }
        let mean = divergence / rows as f64;
        println!("chunks of {chunk}: {mean:.2e} nats over {rows} rows of {} conversations", asked.len());
        // Long chunks are f32 on a device without tensor cores.
        assert!(
            (0.0..=0.01).contains(&mean) && (chunk > 1 || mean > 1e-9),
            "chunks of {chunk}: {mean} nats over {rows} rows"
        );
    }
    let [exact, rounded] = [PlanOptions::plain(), fast()].map(|plan| {
        let wrong = |question: &&&Value| !right(question, &reply(&model, question, plan.clone()));
        asked.iter().filter(wrong).map(|question| question["id"].to_string()).collect::<Vec<_>>()
    });
    println!("wrong of {}: f32 {exact:?}, fast {rounded:?}", asked.len());
    for wrong in [&exact, &rounded] {
        assert!(wrong.len() as f64 <= (1.0 - RIGHT) * asked.len() as f64, "wrong of {}: {wrong:?}", asked.len());
    }
}

fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let top = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f64 = logits.iter().map(|x| f64::from(x - top).exp()).sum();
    logits.iter().map(|x| f64::from(x - top) - sum.ln()).collect()
}

#[test]
fn greedy_replies_are_those_of_pytorch_token_by_token() {
    let references: Vec<Value> = serde_json::from_str(GREEDY).expect("the references parse");
    let ids = |v: &Value| -> Vec<u32> {
        v.as_array().expect("ids").iter().map(|v| v.as_u64().expect("an id") as u32).collect()
    };
    let model = load(Executor::Cpu);
    for reference in &references {
        let mut session = model.session(SessionOptions::default().context(512)).expect("a session");
        session.feed(&ids(&reference["prompt_ids"])).expect("the prompt fits");
        let options = GenerateOptions::default().sampling(Sampling::greedy()).max_tokens(Some(200));
        let got: Vec<u32> =
            session.generate_with(options).expect("generates").map(|t| t.expect("a token").id).collect();
        assert_eq!(got, ids(&reference["reply_ids"]), "{}", reference["id"]);
    }
}

#[test]
fn the_rule_wants_whole_words() {
    assert!(contains("There are 2 apples.", "2", false));
    assert!(!contains("There are 12 apples.", "2", false));
    assert!(!contains("Miranda lives here", "mira", false));
}
