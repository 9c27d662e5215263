//! Products with weights that have a low-rank addition, and several sets of weights combined into
//! one.

use gguf::GgmlType;
use kernels::testing::Switches;
use kernels::testing::kernel::random::Gen;
use kernels::{
    Counts, Device, Executor, Lead, LowRank, PlanOptions, Recorder, Shape, States, StepInput, TensorBytes, Watch,
    Weight, Weights, ops,
};
use std::sync::Arc;

const STEP_ROWS: u32 = 5;
const N: u32 = 7;
const K: u32 = 12;

/// A matrix as plain values for the expected results.
#[derive(Clone)]
struct Matrix {
    cols: usize,
    values: Vec<f32>,
}

impl Matrix {
    fn random(g: &mut Gen, rows: u32, cols: u32) -> Self {
        Self { cols: cols as usize, values: (0..rows * cols).map(|_| g.unit()).collect() }
    }

    fn load(&self, into: &mut Weights) -> Weight {
        let (rows, cols) = ((self.values.len() / self.cols) as u32, self.cols as u32);
        let bytes: Vec<u8> = self.values.iter().flat_map(|v| v.to_le_bytes()).collect();
        into.matrix("w", GgmlType::F32, rows, cols, &TensorBytes::Owned(bytes.into())).expect("a weight")
    }

    /// self + scale b a.
    fn plus(&self, scale: f32, a: &Self, b: &Self) -> Self {
        let term =
            |n: usize, k: usize| (0..b.cols).map(|r| b.values[n * b.cols + r] * a.values[r * a.cols + k]).sum::<f32>();
        let values = self.values.iter().enumerate().map(|(i, v)| v + scale * term(i / self.cols, i % self.cols));
        Self { cols: self.cols, values: values.collect() }
    }
}

/// The product of `x` with the last weight of the set.
fn product(executor: &Executor, weights: Weights, adapt: &[LowRank], w: Weight, x: &Matrix) -> Vec<f32> {
    let mut rec = Recorder::new(Counts { step: STEP_ROWS, out: 0 }, &[]);
    adapt.iter().for_each(|with| rec.adapt(w, *with));
    let input = rec.host_input(0, Shape::new(Lead::Step, STEP_ROWS, K));
    let y = ops::matmul(&mut rec, w, input);
    rec.output(y);
    let mut states = States::new(executor, &[], 1, 1).expect("no states");
    let mut plan = executor
        .plan(rec, &Arc::new(weights.load().expect("room for the weights")), &PlanOptions::plain())
        .expect("a plan");
    let input =
        StepInput { positions: vec![0; STEP_ROWS as usize], host: vec![x.values.clone()], ..StepInput::default() };
    let outputs = plan.run(&mut states, &input, Watch::default()).expect("a step").wait().expect("its outputs");
    outputs.f32(0).to_vec()
}

#[test]
fn products_are_those_with_the_sum_for_any_rank_and_any_number_of_additions() {
    let device = Device::auto().expect("these tests need a Vulkan, Metal or DX12 driver");
    let mut g = Gen::new(3);
    let (w, x) = (Matrix::random(&mut g, N, K), Matrix::random(&mut g, STEP_ROWS, K));
    let pairs = [1, 4, 9].map(|r| (Matrix::random(&mut g, r, K), Matrix::random(&mut g, N, r)));
    let scales = [2.0, -0.5, 0.75];
    let merged = scales.iter().zip(&pairs).fold(w.clone(), |w, (s, (a, b))| w.plus(*s, a, b));
    for executor in [Executor::Cpu, Executor::Gpu(device)] {
        let mut base = Weights::new(&executor);
        // Another weight comes first, so that the test detects handles that were not shifted.
        base.vector("a vector", vec![1.0; 3]);
        let weight = w.load(&mut base);
        let mut all = base.clone();
        let adapt: Vec<LowRank> = scales
            .iter()
            .zip(&pairs)
            .map(|(&scale, (a, b))| {
                let mut own = Weights::new(&executor);
                let (a, b) = (a.load(&mut own), b.load(&mut own));
                let moved = all.append(&own);
                LowRank { a: moved(a), b: moved(b), scale }
            })
            .collect();
        assert_eq!((base.iter().count(), all.iter().count()), (2, 8), "the base keeps to itself");
        let mut whole = Weights::new(&executor);
        let other = merged.load(&mut whole);
        let expected = product(&executor, whole, &[], other, &x);
        let got = product(&executor, all.clone(), &adapt, weight, &x);
        let worst = got.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-5, "{worst:e} on {}", executor.name());
        assert_eq!(
            product(&executor, all, &[], weight, &x),
            product(&executor, base, &[], weight, &x),
            "nothing added, nothing changed"
        );
    }
}
