//! Steps of whole documents keep no cache and give the same logits as sessions with caches.

mod common;

use common::{Tiny, both, exact, ids, logits, worst};
use kernels::testing::Switches;
use kernels::{Counts, PlanOptions, States, StepInput, Watch};
use model::Model;
use model::arch::Logits;
use std::path::Path;

/// Rows of the step. The documents may use fewer.
const ROWS: u32 = 40;

/// The largest difference between the logits of documents in one step and of one session per
/// document.
fn apart(model: &Model, documents: &[Vec<u32>]) -> f32 {
    let executor = model.executor();
    let mut reference = vec![];
    for document in documents {
        let mut session = model.session(exact(512)).expect("a session");
        session.feed(document).expect("room");
        reference.extend(logits(&mut session).0);
    }
    let (mut rec, tensor) = model.documents(Counts { step: ROWS, out: 1 }, Logits::All);
    rec.output(tensor);
    let mut plan = executor.plan(rec, model.weights(), &PlanOptions::plain()).expect("a plan");
    // Values in unused rows must not change any result.
    plan.poison(u32::MAX);
    let mut states = States::new(executor, &model.document_states(), 1, 1).expect("states");
    let mut input = StepInput { out_rows: vec![0], ..StepInput::default() };
    for document in documents {
        let first = input.ids.len() as u32;
        input.ids.extend(document);
        input.positions.extend(0..document.len() as u32);
        input.firsts.extend(document.iter().map(|_| first));
    }
    let run = plan.run(&mut states, &input, Watch::default()).expect("a run");
    worst(&reference, run.wait().expect("logits").f32(0))
}

#[test]
fn documents_give_the_logits_of_sessions_in_every_architecture() {
    let all = [
        Tiny::qwen2(),
        Tiny::qwen3(),
        Tiny::qwen2moe(),
        Tiny::qwen3moe(),
        Tiny::gemma2(),
        Tiny::gemma3(),
        Tiny::gemma4(),
        Tiny::gemma4_dense(),
        Tiny::gemma4_experts(),
    ];
    let documents = [ids(17, 1), ids(1, 2), ids(12, 3)];
    for tiny in all {
        for executor in both() {
            let apart = apart(&tiny.on(&executor), &documents);
            let bound = tiny.rounding().max(1e-5);
            assert!(apart <= bound, "{} on {}: {apart:e} for {bound:e}", tiny.architecture, executor.kind());
        }
    }
}

/// The one architecture without a tiny random model.
#[test]
fn documents_give_the_logits_of_sessions_for_gemma3n() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens/gemma3n/gemma3n-F16.gguf");
    for executor in both() {
        let kind = executor.kind();
        let model = Model::open(&file).expect("a good file").on(executor).expect("a model");
        let apart = apart(&model, &[ids(7, 1), ids(5, 2)]);
        assert!(apart <= 1e-4, "{kind}: {apart:e}");
    }
}
