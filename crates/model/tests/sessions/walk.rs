//! The walk of `weft doctor` over the plans of a session.

use crate::common::{Tiny, gpu};
use kernels::{Agreement, Class, Device, Executor, Table};
use model::{Model, SessionOptions, Walk};
use std::collections::HashSet;
use std::sync::atomic::AtomicBool;

fn walked(walk: &mut Walk) -> Vec<(String, Vec<Agreement>)> {
    let steps = walk.steps().to_vec();
    steps.iter().map(|step| (step.to_string(), walk.run(step, &AtomicBool::new(false)).unwrap())).collect()
}

fn device() -> Device {
    let Executor::Gpu(device) = gpu() else { unreachable!() };
    device
}

fn walk(tiny: &Tiny, executor: &Executor, options: &SessionOptions) -> (Model, Walk) {
    let (model, host) = (tiny.on(executor), tiny.on(&Executor::Cpu));
    let walk = Walk::new(&model, &host, options, 7).unwrap();
    (model, walk)
}

#[test]
fn every_kernel_of_the_walk_of_a_card_agrees_and_none_of_the_session_is_left_out() {
    let card = Executor::from(&device().with_table(Table::usual(Class::Discrete, false)));
    let options = SessionOptions::default().context(400).chunk(128).least_rows(32);
    let (_model, mut walk) = walk(&Tiny { layers: 1, ..Tiny::qwen3().mixed() }, &card, &options);
    let mut ran = HashSet::new();
    let mut sampled = 0;
    for (step, all) in walked(&mut walk) {
        for of in all {
            assert!(of.holds(), "{step}: {of:?}");
            sampled += usize::from(of.rows.as_ref().is_some_and(|rows| rows.len() >= 16));
            ran.extend(of.kernels);
        }
    }
    assert!(sampled > 10, "{sampled} operations of some rows");
    let not_run = walk.not_run(&ran).unwrap();
    let own = |of: &model::NotRun| of.precision == model::Precision::Fast && of.kv == model::KvType::F16;
    assert_eq!(not_run.iter().filter(|of| own(of)).collect::<Vec<_>>(), Vec::<&model::NotRun>::new());
    // Other options of the model have other kernels.
    assert!(not_run.iter().any(|of| of.kernels.iter().any(|kernel| kernel.contains("kv-q8_0"))), "{not_run:?}");
}

#[test]
fn a_walk_has_every_plan_batches_and_the_ends_of_the_context() {
    let options = SessionOptions::default().context(300).chunk(96);
    let (_model, found) = walk(&Tiny::qwen3(), &gpu(), &options);
    let steps: Vec<String> = found.steps().iter().map(ToString::to_string).collect();
    for wanted in [
        "1 row at position 0, drawn with penalties",
        "96 rows from position 0, drawn with penalties",
        "1 row at position 0",
        "64 rows from position 0, logits of all rows",
        "1 row at position 299, drawn with penalties",
        "96 rows from position 204, drawn with penalties",
        "1 row of each of 3 sequences at position 0, drawn with penalties",
        "7 rows of each of 3 sequences from position 293, drawn with penalties",
    ] {
        assert!(steps.iter().any(|step| step == wanted), "no {wanted} in {steps:#?}");
    }
    // A context shorter than the chunk has the plan of the chunk, too.
    let (_model, short) = walk(&Tiny::qwen3(), &gpu(), &options.context(50));
    assert!(short.steps().iter().any(|step| step.to_string().starts_with("50 rows from position 0")));
    let (_model, none) = walk(&Tiny::qwen3(), &Executor::Cpu, &SessionOptions::default());
    assert!(none.steps().is_empty());
}
