//! Draws on both executors: their distribution, their equality, and the use of a drawn id in the
//! next step.

use gguf::GgmlType;
use kernels::ops::{embed, gather_rows, penalize, rope, sample, scale};
use kernels::testing::Switches;
use kernels::testing::kernel::random::Gen;
use kernels::testing::parity::Case;
use kernels::{
    Counts, Device, Executor, Lead, Plan, PlanOptions, Recorder, RopeTable, SampleParams, Shape, StateKind, States,
    StepInput, TensorBytes, Watch, Weights,
};
use std::sync::{Arc, OnceLock};

const DRAWS: u32 = 10_000;
/// Logits of twenty ids. The most probable id is 40 times as probable as the least; two ids are
/// equal.
const LOGITS: [f32; 20] =
    [0.1, 2.0, -0.7, 1.3, 0.0, -1.2, 0.9, 2.4, -0.3, 1.3, 0.6, -1.0, 1.7, 0.4, -0.5, 2.1, -0.1, 1.0, 0.3, -0.9];

/// One device for all tests of this process: drivers have hung when many were created and destroyed
/// at once.
fn device() -> Device {
    static SHARED: OnceLock<Device> = OnceLock::new();
    let open =
        || Device::auto().unwrap_or_else(|e| panic!("{e}; install a driver (Debian: mesa-vulkan-drivers libvulkan1)"));
    SHARED.get_or_init(open).clone()
}

fn gpu() -> Executor {
    Executor::Gpu(device())
}

/// The ids drawn with these parameters at the positions 0 .. DRAWS of one sequence.
fn draws(executor: &Executor, params: SampleParams) -> Vec<u32> {
    let mut case = Case::with_states(DRAWS, &[StateKind::Tokens], 1, DRAWS);
    case.input.sampling = vec![params; DRAWS as usize];
    let logits = case.given(Shape::new(Lead::Out, DRAWS, 20), LOGITS.repeat(DRAWS as usize));
    let tokens = case.rec.state(0);
    let y = sample(&mut case.rec, logits, logits, tokens);
    case.expect(y);
    let (outputs, _) = case.run(executor, &PlanOptions::plain()).expect("a run");
    outputs[0].chunks(2).map(|row| row[0]).collect()
}

/// The probability of every id under these parameters.
fn probabilities(params: &SampleParams) -> Vec<f64> {
    let threshold = cpu_ref::sample_threshold(&LOGITS, &params.spec());
    let kept = LOGITS
        .map(|l| if f64::from(l) >= threshold { (f64::from(l) / f64::from(params.temperature)).exp() } else { 0.0 });
    kept.iter().map(|p| p / kept.iter().sum::<f64>()).collect()
}

/// Pearson's chi-square divided by its upper 0.1 % point (by Wilson and Hilferty's cube root).
/// Below 1 the draws follow the distribution.
fn chi_square(ids: &[u32], probabilities: &[f64]) -> f64 {
    let mut counts = [0.0; LOGITS.len()];
    ids.iter().for_each(|&id| counts[id as usize] += 1.0);
    let (mut sum, mut outcomes) = (0.0, 0.0);
    for (id, (&count, &p)) in counts.iter().zip(probabilities).enumerate() {
        assert!(p > 0.0 || count == 0.0, "id {id} was filtered and drawn {count} times");
        if p > 0.0 {
            let expected = p * ids.len() as f64;
            sum += (count - expected).powi(2) / expected;
            outcomes += 1.0;
        }
    }
    let spread = 2.0 / (9.0 * (outcomes - 1.0_f64));
    sum / ((outcomes - 1.0) * (1.0 - spread + 3.09 * spread.sqrt()).powi(3))
}

#[test]
fn draws_follow_the_filtered_softmax_and_are_those_of_the_oracle() {
    let gpu = gpu();
    let plain = SampleParams { temperature: 1.0, seed: [17, 4], sequence: 3, ..SampleParams::default() };
    let all = [
        plain,
        SampleParams { temperature: 0.5, top_k: 7, ..plain },
        SampleParams { top_p: 0.8, ..plain },
        SampleParams { temperature: 2.0, min_p: 0.2, ..plain },
        SampleParams { temperature: 0.8, top_k: 12, top_p: 0.9, min_p: 0.1, seed: [5, 6], sequence: 0, ..plain },
    ];
    for params in all {
        let drawn = draws(&gpu, params);
        let off = chi_square(&drawn, &probabilities(&params));
        assert!(off < 1.0, "{params:?}: {off}");
        assert!(drawn == draws(&Executor::Cpu, params), "{params:?}: the executors draw differently");
    }
}

#[test]
fn the_chi_square_rejects_a_slightly_wrong_temperature() {
    let params = SampleParams { temperature: 1.0, seed: [17, 4], ..SampleParams::default() };
    let drawn = draws(&Executor::Cpu, params);
    assert!(chi_square(&drawn, &probabilities(&SampleParams { temperature: 0.9, ..params })) > 1.5);
}

/// Flat and peaked logits of a real vocabulary's size: either the list decides, or the search over
/// the whole row.
#[test]
fn draws_over_a_whole_vocabulary_are_those_of_the_oracle() {
    const VOCAB: u32 = 151_936;
    let plain = SampleParams { temperature: 1.0, seed: [3, 9], ..SampleParams::default() };
    let all = [
        SampleParams::default(),
        plain,
        SampleParams { top_k: 40, top_p: 0.95, ..plain },
        SampleParams { top_k: 5000, ..plain },
        SampleParams { top_p: 0.9, min_p: 1e-4, ..plain },
    ];
    for spread in [0.5, 6.0] {
        let rows = all.len() as u32;
        let mut case = Case::with_states(rows, &[StateKind::Tokens], 1, 16);
        case.input.sampling = all.to_vec();
        let mut g = Gen::new(21);
        let bell = |g: &mut Gen| (0..4).map(|_| g.unit()).sum::<f32>();
        let values = (0..rows * VOCAB).map(|_| spread * bell(&mut g)).collect();
        let logits = case.given(Shape::new(Lead::Out, rows, VOCAB), values);
        let tokens = case.rec.state(0);
        let y = sample(&mut case.rec, logits, logits, tokens);
        case.expect(y);
        let outcome = case.compare(&device(), false).expect("a run");
        assert!(outcome.holds(), "spread {spread}");
    }
}

/// With these seeds, the 24 random bits of one id at position 0 are all zeros or all ones. Its
/// noise is then -2.9 or 17.3.
#[test]
fn extreme_bits_give_finite_noise() {
    let extremes = [(0, 0, 4_166_419), (0, 0xff_ffff, 17_762_771), (1, 0, 437_909), (1, 0xff_ffff, 8_739_893)];
    let mut case = Case::with_states(8, &[StateKind::Tokens], 8, 2);
    case.input.positions = vec![0; 8];
    case.input.sequences = (0..8).collect();
    for (id, bits, seed) in extremes {
        assert_eq!(cpu_ref::threefry2x32([seed, 0], [0, id])[0] >> 8, bits, "seed {seed}");
        case.input.sampling.extend([SampleParams { temperature: 1.0, seed: [seed, 0], ..SampleParams::default() }; 2]);
    }
    // The noise of each id is less than 30 above the other's, so only unbounded noise can change
    // the order.
    let logits = case.given(Shape::new(Lead::Out, 8, 2), [30.0, 0.0, 0.0, 30.0].repeat(4));
    let tokens = case.rec.state(0);
    let y = sample(&mut case.rec, logits, logits, tokens);
    case.expect(y);
    let (outputs, _) = case.run(&gpu(), &PlanOptions::plain()).expect("a run");
    let drawn: Vec<u32> = outputs[0].chunks(2).map(|row| row[0]).collect();
    assert_eq!(drawn, [0, 1].repeat(4));
}

/// A recording of two rows with given logits: the embedding of the id at each row's position, and
/// the next id.
struct Steps {
    plan: Plan,
    states: States,
}

const CAPACITY: u32 = 4;

impl Steps {
    fn new(executor: &Executor) -> Self {
        let mut weights = Weights::new(executor);
        let ids: Vec<u8> = (0..20).flat_map(|id| (id as f32).to_le_bytes()).collect();
        let table =
            weights.matrix("table", GgmlType::F32, 20, 1, &TensorBytes::Owned(ids.as_slice().into())).expect("a table");
        let mut rec = Recorder::new(Counts { step: 2, out: 2 }, &[StateKind::Tokens]);
        let tokens = rec.state(0);
        let said = embed(&mut rec, table, tokens);
        let raw = rec.host_input(0, Shape::new(Lead::Out, 2, 20));
        let logits = penalize(&mut rec, raw, tokens);
        let next = sample(&mut rec, logits, raw, tokens);
        rec.output(said);
        rec.output(next);
        let states = States::new(executor, &[StateKind::Tokens], 2, CAPACITY).expect("states");
        Self {
            plan: executor.plan(rec, &Arc::new(weights.load().expect("room")), &PlanOptions::plain()).expect("a plan"),
            states,
        }
    }

    /// The ids at the rows' positions, and the drawn ids.
    fn run(&mut self, position: u32) -> ([f32; 2], [u32; 2]) {
        let input = StepInput {
            positions: vec![position; 2],
            sequences: vec![0, 1],
            out_rows: vec![0, 1],
            // With equal logits, the lowest id that was not used yet is the largest.
            sampling: vec![SampleParams { presence: 1.0, ..SampleParams::default() }; 2],
            host: vec![vec![0.0; 40]],
            ..StepInput::default()
        };
        let outputs =
            self.plan.run(&mut self.states, &input, Watch::default()).expect("a step").wait().expect("its outputs");
        ([outputs.f32(0)[0], outputs.f32(0)[1]], [outputs.0[1][0], outputs.0[1][2]])
    }
}

#[test]
fn a_drawn_id_is_embedded_and_penalized_by_the_next_step_and_a_full_state_is_left_alone() {
    for executor in [gpu(), Executor::Cpu] {
        let mut steps = Steps::new(&executor);
        for (sequence, prompt) in [(0, 9), (1, 0)] {
            let tokens = Recorder::new(Counts { step: 1, out: 1 }, &[StateKind::Tokens]).state(0);
            steps.states.write_tokens(tokens, sequence, 0, &[prompt]);
        }
        let name = executor.name();
        assert_eq!(steps.run(0), ([9.0, 0.0], [0, 1]), "{name}");
        assert_eq!(steps.run(1), ([0.0, 1.0], [1, 2]), "{name}");
        assert_eq!(steps.run(2), ([1.0, 2.0], [2, 3]), "{name}");
        assert_eq!(steps.run(3), ([2.0, 3.0], [3, 4]), "{name}");
        // Past the end lies the start of the other sequence, and through the ring the start of the
        // own one.
        assert_eq!(steps.run(0).0, [9.0, 0.0], "{name}");
    }
}

/// Steps read their own positions and parameters, whether or not they were foreseen: 40 steps in a
/// row, some repeated, one row alone, another seed.
#[test]
fn inputs_are_those_of_the_step_wherever_it_goes() {
    let seeded = |seed| SampleParams { temperature: 1.0, seed: [seed, 4], ..SampleParams::default() };
    let far = (0..40).chain([17, 18, 19, 3, 3, 4, 39, 0]).map(|p| (vec![p, p / 2], 1));
    let order: Vec<_> = far.chain([(vec![5], 1), (vec![6], 1), (vec![7], 2), (vec![8], 2), (vec![9, 1], 2)]).collect();
    let run = |executor: &Executor| {
        let mut rec = Recorder::new(Counts { step: 2, out: 2 }, &[StateKind::Tokens]);
        let tokens = rec.state(0);
        let x = rec.rope_rows(&RopeTable::new(8, 100.0));
        let turned = rope(&mut rec, x, x);
        let zeros = scale(&mut rec, x, 0.0);
        let logits = gather_rows(&mut rec, zeros);
        let next = sample(&mut rec, logits, logits, tokens);
        rec.output(turned);
        rec.output(next);
        let mut states = States::new(executor, &[StateKind::Tokens], 2, 64).expect("states");
        let mut plan = executor.plan(rec, &Arc::new(Weights::new(executor)), &PlanOptions::plain()).expect("a plan");
        let step = |(positions, seed): &(Vec<u32>, u32)| {
            let rows: Vec<u32> = (0..positions.len() as u32).collect();
            let sampling = vec![seeded(*seed); rows.len()];
            let input = StepInput {
                positions: positions.clone(),
                sequences: rows.clone(),
                out_rows: rows,
                sampling,
                ..StepInput::default()
            };
            plan.run(&mut states, &input, Watch::default()).expect("a step").wait().expect("its outputs")
        };
        order.iter().map(step).collect::<Vec<_>>()
    };
    for ((at, gpu), cpu) in order.iter().zip(run(&gpu())).zip(run(&Executor::Cpu)) {
        let drawn = |outputs: &kernels::Outputs| outputs.0[1].chunks(2).map(|row| row[0]).collect::<Vec<_>>();
        assert!(cpu_ref::nmse(cpu.f32(0), gpu.f32(0)) < 1e-12, "{at:?}");
        assert_eq!(drawn(&gpu), drawn(&cpu), "{at:?}");
    }
}
