//! Submits, pipelines, read-backs and lifetimes.

use crate::{device, numbers, within};
use gguf::GgmlType;
use kernels::testing::Switches;
use kernels::{
    Counts, Device, Executor, Lead, Plan, PlanOptions, Recorder, Shape, StateKind, States, StepInput, TensorBytes,
    Watch, Weight, Weights, ops,
};
use std::collections::HashSet;
use std::sync::Arc;

const ROWS: u32 = 3;
const DIM: u32 = 64;

/// A square matrix and a vector.
fn weights(executor: &Executor) -> (Arc<Weights>, [Weight; 2]) {
    let mut weights = Weights::new(executor);
    let bytes: Vec<u8> = numbers((DIM * DIM) as usize, 1, 0.3).iter().flat_map(|w| w.to_le_bytes()).collect();
    let w = weights.matrix("w", GgmlType::F32, DIM, DIM, &TensorBytes::Owned(bytes.into())).expect("a weight");
    let norm = weights.vector("norm", numbers(DIM as usize, 2, 1.0));
    (Arc::new(weights.load().expect("room for the weights")), [w, norm])
}

/// Norms, products and units of three layers over the same weights.
fn layers(executor: &Executor, weights: &Arc<Weights>, [w, norm]: [Weight; 2]) -> Plan {
    let mut rec = Recorder::new(Counts { step: ROWS, out: 0 }, &[]);
    let mut h = rec.host_input(0, Shape::new(Lead::Step, ROWS, DIM));
    for layer in 0..3 {
        rec.layer(Some(layer));
        let x = ops::rms_norm(&mut rec, h, Some(norm), 1e-6);
        let x = ops::matmul(&mut rec, w, x);
        let x = ops::silu(&mut rec, x);
        h = ops::add(&mut rec, h, x);
    }
    rec.output(h);
    executor.plan(rec, weights, &PlanOptions::plain()).expect("a plan")
}

fn run(plan: &mut Plan, states: &mut States) -> Vec<f32> {
    let host = vec![numbers((ROWS * DIM) as usize, 3, 1.0)];
    let input = StepInput {
        positions: vec![0; ROWS as usize],
        sequences: vec![0; ROWS as usize],
        host,
        ..StepInput::default()
    };
    plan.run(states, &input, Watch::default()).expect("a step").wait().expect("its results").f32(0).to_vec()
}

#[test]
fn a_step_is_one_submit_and_a_shader_is_compiled_once() {
    // A device of its own, because other tests count on theirs.
    let own = Device::auto().expect("an adapter, if only the software one");
    let executor = Executor::from(&own);
    let (loaded, handles) = weights(&executor);
    let mut states = States::new(&executor, &[], 1, 1).expect("no states");
    let mut plan = layers(&executor, &loaded, handles);
    let shaders: HashSet<String> =
        plan.planned().expect("a plan on a GPU").dispatches.iter().map(|placed| placed.shader.label()).collect();
    let compiled = own.spent().pipelines;
    assert!(compiled as usize == shaders.len() && shaders.len() < 9, "{compiled} pipelines for {shaders:?}");
    run(&mut plan, &mut states);
    let (submitted, created) = (own.submitted(), own.created());
    for steps in 1..=5 {
        run(&mut plan, &mut states);
        assert_eq!(own.submitted() - submitted, steps, "dispatches of all layers and the read-back go together");
    }
    assert_eq!(own.created(), created, "a run makes no buffer, bind group or pipeline");
    layers(&executor, &loaded, handles);
    assert_eq!(own.spent().pipelines, compiled, "another plan compiles nothing again");
}

#[test]
fn weights_serve_every_operation_and_outlive_the_plan_that_used_them_first() {
    let executor = Executor::from(&device());
    let (loaded, handles) = weights(&executor);
    let mut states = States::new(&executor, &[], 1, 1).expect("no states");
    let first = run(&mut layers(&executor, &loaded, handles), &mut states);
    // The plan above is gone. Products, norms and a look-up of rows read the same buffers. The
    // caller's handle goes before they run.
    let mut second = layers(&executor, &loaded, handles);
    let mut rec = Recorder::of_documents(Counts { step: ROWS, out: 0 }, &[StateKind::Tokens]);
    let tokens = rec.state(0);
    let rows = ops::embed(&mut rec, handles[0], tokens);
    let y = ops::rms_norm(&mut rec, rows, Some(handles[1]), 1e-6);
    rec.output(y);
    let mut looked_up = executor.plan(rec, &loaded, &PlanOptions::plain()).expect("a plan");
    drop(loaded);
    assert_eq!(run(&mut second, &mut states), first);
    let ids = vec![5, 0, 63];
    let input = StepInput { positions: vec![0, 1, 2], firsts: vec![0; 3], ids: ids.clone(), ..StepInput::default() };
    let mut of_tokens = States::new(&executor, &[StateKind::Tokens], 1, 8).expect("a state");
    let got = looked_up.run(&mut of_tokens, &input, Watch::default()).expect("a step").wait().expect("its results");
    let (w, norm) = (numbers((DIM * DIM) as usize, 1, 0.3), numbers(DIM as usize, 2, 1.0));
    let rows: Vec<f32> = ids.iter().flat_map(|&id| &w[(id * DIM) as usize..][..DIM as usize]).copied().collect();
    let mut expected = vec![0.0; rows.len()];
    cpu_ref::rms_norm(&rows, Some(&norm), DIM as usize, f64::from(1e-6_f32), &mut expected);
    within("rows of the matrix", 1e-6, got.f32(0), &expected);
}
