//! Gradients of trained weights, and of operations that no model has, against finite differences.

use crate::Error;
use crate::tape::Tape;
use kernels::ops;
use kernels::{
    Counts, Executor, Lead, PlanOptions, Recorder, Shape, StateKind, States, StepInput, Tensor, Watch, Weights,
};
use std::collections::HashMap;
use std::sync::Arc;

const IDS: [u32; 5] = [3, 0, 3, 1, 3];
const VOCABULARY: u32 = 4;
const DIM: u32 = 8;
/// Words of the weights: a table, a norm, a bias, a factor for each column, one for all, and the
/// weight and the bias of a layer norm.
const WORDS: [u32; 7] = [VOCABULARY * DIM, DIM, DIM, DIM, 1, DIM, DIM];

/// `len` numbers between -1 and 1 that repeat nowhere.
fn numbers(len: u32, seed: u32) -> Vec<f32> {
    (0..len).map(|i| ((f64::from(i) * 0.7391 + f64::from(seed) * 2.113).sin() * 1.7).sin() as f32).collect()
}

/// Records a network over the weights in the states 1 to 7; state 0 holds token ids.
fn forward(rec: &mut Recorder) -> Tensor {
    let [table, norm, bias, factor, one, scale, shift] = [1, 2, 3, 4, 5, 6, 7].map(|n| rec.state(n));
    let tokens = rec.state(0);
    let table = rec.weight(table, VOCABULARY, DIM);
    let [norm, bias, factor, scale, shift] = [norm, bias, factor, scale, shift].map(|state| rec.weight(state, 1, DIM));
    let one = rec.weight(one, 1, 1);
    let h = ops::embed(rec, table, tokens);
    let h = ops::layer_norm(rec, h, Some(scale), Some(shift), 1e-3);
    let x = ops::rms_norm(rec, h, Some(norm), 1e-3);
    let x = ops::add_bias(rec, x, bias);
    let x = ops::mul_row(rec, x, factor);
    let x = ops::mul_row(rec, x, one);
    let key = rec.host_input(1, Shape::new(Lead::Fixed, 1, 2));
    let x = ops::dropout(rec, x, key, 7, 0.25);
    let kept = ops::relu(rec, x);
    let x = ops::add(rec, x, kept);
    let (a, b) = (ops::silu(rec, x), ops::gelu(rec, x));
    // The weight `norm` is used a second time, for the norm of heads.
    let half = ops::rms_norm(rec, a.heads(1), Some(norm), 1e-3);
    let (a, b) = (ops::softmax(rec, half.heads(2)), ops::log_softmax(rec, b.heads(2)));
    // The table is the output matrix as well.
    let sum = ops::add(rec, a.flat(), b.flat());
    ops::matmul(rec, table, sum)
}

/// The loss, the product of the result and fixed numbers, and the gradients of all weights.
fn computed(weights: &[Vec<f32>]) -> (f64, Vec<Vec<f32>>) {
    let words = WORDS.map(StateKind::Words);
    let kinds = [&[StateKind::Tokens][..], &words, &words].concat();
    let mut rec = Recorder::of_documents(Counts { step: 64, out: 64 }, &kinds);
    let y = forward(&mut rec);
    let nodes = rec.nodes().to_vec();
    let weight = |n: usize, rec: &Recorder| {
        let cols = if n == 4 { 1 } else { DIM };
        rec.weight(rec.state(n + 1), WORDS[n] / cols, cols)
    };
    let trained: HashMap<_, _> = (0..WORDS.len()).map(|n| (weight(n, &rec), rec.state(n + 1 + WORDS.len()))).collect();
    let dy = rec.host_input(0, y.shape);
    rec.output(y);
    let mut tape = Tape::new(&mut rec, &nodes, &trained, &[]);
    tape.add(y, |_| dy);
    tape.walk(&nodes).expect("derivatives");
    let mut states = States::new(&Executor::Cpu, &kinds, 1, 1).expect("states");
    for (n, values) in weights.iter().enumerate() {
        states.write_words(states.state(n + 1), 0, &values.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
    }
    let dy = numbers(IDS.len() as u32 * VOCABULARY, 9);
    let rows = IDS.len();
    let input = StepInput {
        positions: (0..rows as u32).collect(),
        ids: IDS.to_vec(),
        firsts: vec![0; rows],
        host: vec![dy.clone(), [11, 12].map(f32::from_bits).to_vec()],
        ..StepInput::default()
    };
    let weights = Arc::new(Weights::new(&Executor::Cpu));
    let mut plan = Executor::Cpu.plan(rec, &weights, &PlanOptions::training()).expect("a plan");
    let outputs = plan.run(&mut states, &input, Watch::default()).expect("a run").wait().expect("results");
    let loss = outputs.f32(0).iter().zip(&dy).map(|(y, dy)| f64::from(*y) * f64::from(*dy)).sum();
    let gradient = |n: usize| {
        let (state, mut bytes) = (states.state(n + 1 + WORDS.len()), vec![]);
        let each = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok::<(), kernels::Error>(())
        };
        states.read(state, 0, 0..states.rows(state), each).expect("words");
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    };
    (loss, (0..WORDS.len()).map(gradient).collect())
}

#[test]
fn trained_tables_norms_biases_and_factors() {
    let start: Vec<Vec<f32>> =
        (0..).zip(WORDS).map(|(n, words)| numbers(words, n).iter().map(|x| x + 0.3).collect()).collect();
    let (_, gradient) = computed(&start);
    for n in 0..WORDS.len() {
        let direction = numbers(WORDS[n], 20 + n as u32);
        let along = |by: f64| {
            let mut moved = start.clone();
            moved[n].iter_mut().zip(&direction).for_each(|(v, d)| *v = (f64::from(*v) + by * f64::from(*d)) as f32);
            computed(&moved).0
        };
        let difference = |by: f64| (along(by) - along(-by)) / (2.0 * by);
        let expected = (4.0 * difference(5e-3) - difference(1e-2)) / 3.0;
        let got: f64 = gradient[n].iter().zip(&direction).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum();
        assert!((got - expected).abs() <= 1e-3 * expected.abs(), "weight {n}: {got}, by differences {expected}");
    }
}

#[test]
fn discrete_operations_and_weights_without_a_gradient_are_named() {
    let mut rec = Recorder::new(Counts { step: 1, out: 1 }, &[StateKind::Words(16), StateKind::Words(16)]);
    let w = rec.weight(rec.state(0), 4, 4);
    let trained = HashMap::from([(w, rec.state(1))]);
    let x = rec.host_input(0, Shape::new(Lead::Step, 1, 4));
    let y = ops::matmul(&mut rec, w, x);
    let largest = ops::argmax(&mut rec, y);
    let refused = |rec: &mut Recorder, from: Tensor| {
        let nodes = rec.nodes().to_vec();
        let mut tape = Tape::new(rec, &nodes, &trained, &[]);
        tape.add(from, |_| from);
        tape.walk(&nodes).expect_err("refused")
    };
    let error = refused(&mut rec, largest);
    assert!(matches!(error, Error::NotDifferentiable { operation: "argmax" }), "{error}");
    let routes = ops::route(&mut rec, y, 2, true, None);
    let of_experts = ops::matmul_experts(&mut rec, w, 0..1, x, &routes);
    let error = refused(&mut rec, of_experts);
    assert!(matches!(error, Error::NoGradient { operation: "matmul_experts" }), "{error}");
}
