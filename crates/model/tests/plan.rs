//! The plan of a decode step, per architecture, as `weft inspect --plan` prints it.

mod common;

use common::{Tiny, open};
use kernels::{Caps, Executor, PlanOptions};
use model::SessionOptions;

/// The same on every machine.
const CAPS: Caps = Caps::WEBGPU;

fn planned(tiny: &Tiny, caps: &Caps, options: &PlanOptions) -> String {
    let checked = open(&tiny.file()).expect("a good file").check(&Executor::Cpu).expect("a model");
    let rec = checked.recording(&SessionOptions::default(), 1);
    kernels::plan::plan(&rec, caps, options).expect("plans").to_string()
}

#[test]
fn qwen3() {
    insta::assert_snapshot!(planned(&Tiny { layers: 1, ..Tiny::qwen3() }, &CAPS, &PlanOptions::default()));
}

#[test]
fn qwen2_with_its_biases_in_the_products() {
    insta::assert_snapshot!(planned(&Tiny { layers: 1, ..Tiny::qwen2() }, &CAPS, &PlanOptions::default()));
}

#[test]
fn a_weight_past_the_binding_limit_is_split_by_rows() {
    let caps = Caps { max_binding_bytes: 8 << 10, ..CAPS };
    insta::assert_snapshot!(planned(&Tiny { layers: 1, ..Tiny::qwen3() }, &caps, &PlanOptions::default()));
}

#[test]
fn unfused_is_longer_and_a_tap_keeps_its_value() {
    let tiny = Tiny { layers: 1, ..Tiny::qwen2() };
    let lines = |options: &PlanOptions| planned(&tiny, &CAPS, options).lines().count();
    let fused = lines(&PlanOptions::default());
    assert!(lines(&PlanOptions { unfused: true, ..PlanOptions::default() }) > fused);
    let tapped = PlanOptions { taps: vec!["layer_out".into()], ..PlanOptions::default() };
    assert_eq!(lines(&tapped), fused);
}
