//! Tests of states that do not fit, of growth, and of the shortest sufficient ring.

use super::*;
use crate::Recorder;
use crate::attention::attention::{Attend, attention};
use crate::attention::kv_append::kv_append;
use crate::device::tests::device;
use crate::exec::Watch;
use crate::exec::weights::Weights;
use crate::graph::input::StepInput;
use crate::graph::tensor::{Counts, KvState, Lead, Shape};
use crate::kernel::random::Gen;
use crate::matmul::matmul::matmul;
use crate::plan::PlanOptions;
use cpu_ref::KvType;
use cpu_ref::Mask;
use std::sync::Arc;

#[test]
fn host_memory_that_is_not_there_is_an_error_and_growth_leaves_what_there_was() {
    let kind = StateKind::kv(KvType::F32, 1 << 20);
    let refused =
        |result: Result<(), Error>| matches!(result, Err(Error::OutOfMemory { bytes, .. }) if bytes > 1 << 50);
    assert!(refused(States::new(&Executor::Cpu, &[kind], 1, u32::MAX).map(drop)));
    assert!(refused(States::new(&Executor::Cpu, &[kind], u32::MAX, u32::MAX).map(drop)), "more than a u64 counts");
    let mut states = States::new(&Executor::Cpu, &[kind, StateKind::Tokens], 1, 2).expect("a few rows");
    assert!(refused(states.grow(u32::MAX)));
    assert_eq!((states.capacity(), states.bytes()), (2, 2 * (4 + (4 << 20))));
}

#[test]
fn a_ring_grows_to_its_length_and_no_further() {
    let ring = StateKind::Kv { ty: KvType::F32, width: 4, ring: Some(5) };
    for executor in [Executor::Cpu, Executor::Gpu(device())] {
        let mut states = States::new(&executor, &[ring, StateKind::kv(KvType::F32, 4)], 2, 3).expect("states");
        for (capacity, rows) in [(3, 3), (4, 4), (5, 5), (6, 5), (100, 5)] {
            states.grow(capacity).expect("room");
            assert_eq!((states.rows(State(0)), states.rows(State(1))), (rows, capacity));
            assert_eq!(states.bytes(), u64::from(2 * 16 * (rows + capacity)));
        }
    }
}

const WINDOW: u32 = 5;

const POSITIONS: u32 = 40;

/// Attention of every position with a window, `step` positions at a time. The states grow from 4
/// positions on.
fn windowed(executor: &Executor, ring: Option<u32>, step: u32) -> Vec<f32> {
    let kinds = [StateKind::Kv { ty: KvType::F32, width: 4, ring }; 2];
    let mut rec = Recorder::new(Counts { step, out: 0 }, &kinds);
    let [q, k, v] = [0, 1, 2].map(|n| rec.host_input(n, Shape::new(Lead::Step, step, 4)));
    let kv = KvState::new(rec.state(0), rec.state(1));
    let kv = kv_append(&mut rec, kv, k, v);
    let y = attention(&mut rec, q, kv, 1, Attend { mask: Mask::Window(WINDOW as usize), scale: 1.0, softcap: None });
    rec.output(y);
    let mut plan = executor.plan(rec, &Arc::new(Weights::new(executor)), &PlanOptions::plain()).expect("a plan");
    let mut states = States::new(executor, &kinds, 1, 4).expect("states");
    let (mut g, mut all) = (Gen::new(7), vec![]);
    let values: Vec<[[f32; 4]; 3]> = (0..POSITIONS).map(|_| [(); 3].map(|()| [(); 4].map(|()| g.unit()))).collect();
    for positions in (0..POSITIONS).collect::<Vec<_>>().chunks(step as usize) {
        states.grow((positions[0] + step).max(states.capacity())).expect("room");
        let of = |n: usize| positions.iter().flat_map(|&p| values[p as usize][n]).collect();
        let (sequences, host) = (vec![0; positions.len()], vec![of(0), of(1), of(2)]);
        let input = StepInput { positions: positions.to_vec(), sequences, host, ..StepInput::default() };
        let outputs = plan.run(&mut states, &input, Watch::default()).expect("a step").wait().expect("its outputs");
        all.extend_from_slice(outputs.f32(0));
    }
    all
}

#[test]
fn a_ring_of_a_window_and_a_step_is_as_good_as_all_positions_and_one_row_less_is_not() {
    for executor in [Executor::Cpu, Executor::Gpu(device())] {
        let whole = windowed(&executor, None, 1);
        for step in [1, 2, 3, 7, 16] {
            let apart = |ring| {
                let ringed = windowed(&executor, Some(ring), step);
                whole.iter().zip(&ringed).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
            };
            // All rows of a step are written before attention, and the first row still needs the
            // keys of its whole window.
            let least = WINDOW + step - 1;
            for ring in [least, least + 1, least + 6] {
                assert!(apart(ring) < 1e-6, "a ring of {ring}, steps of {step} on {}", executor.kind());
            }
            assert!(apart(least - 1) > 1e-3, "a ring of {}, steps of {step} on {}", least - 1, executor.kind());
        }
    }
}

/// A weight in a state is read when the step runs. A state of words has one copy for all sequences
/// and positions.
#[test]
fn words_are_a_weight_that_changes_and_that_growth_and_forks_leave_alone() {
    let kinds = [StateKind::Tokens, StateKind::Words(8)];
    for executor in [Executor::Cpu, Executor::Gpu(device())] {
        let mut states = States::new(&executor, &kinds, 3, 2).expect("states");
        assert_eq!(states.bytes(), 3 * 2 * 4 + 8 * 4);
        let mut rec = Recorder::new(Counts { step: 1, out: 0 }, &kinds);
        let w = rec.weight(rec.state(1), 2, 4);
        let x = rec.host_input(0, Shape::new(Lead::Step, 1, 4));
        let y = matmul(&mut rec, w, x);
        rec.output(y);
        let mut plan = executor.plan(rec, &Arc::new(Weights::new(&executor)), &PlanOptions::plain()).expect("a plan");
        let input = StepInput {
            positions: vec![0],
            sequences: vec![0],
            host: vec![vec![1.0, 10.0, 100.0, 1000.0]],
            ..StepInput::default()
        };
        let mut product = |states: &mut States| {
            plan.run(states, &input, Watch::default()).and_then(crate::Pending::wait).expect("a run").f32(0).to_vec()
        };
        let words = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0].map(f32::to_bits);
        states.write_words(State(1), 0, &words);
        assert_eq!(product(&mut states), [4321.0, 8765.0], "{}", executor.kind());
        states.write_words(State(1), 4, &[9.0_f32.to_bits()]);
        states.grow(5).expect("room");
        let mut fork = states.fork(0).expect("room");
        states.write_words(State(1), 7, &[0]);
        assert_eq!(
            [product(&mut fork), product(&mut states)],
            [[4321.0, 8769.0], [4321.0, 769.0]],
            "{}",
            executor.kind()
        );
        let mut read = vec![];
        let each = |piece: &[u8]| {
            read.extend_from_slice(piece);
            Ok::<(), Error>(())
        };
        states.read(State(1), 0, 4..8, each).expect("words");
        assert_eq!(read, bytemuck::cast_slice::<f32, u8>(&[9.0, 6.0, 7.0, 0.0]));
    }
}

#[test]
#[should_panic(expected = "words 7.. of 8")]
fn words_past_the_end_are_refused() {
    let mut states = States::new(&Executor::Cpu, &[StateKind::Words(8)], 1, 1).expect("states");
    states.write_words(State(0), 7, &[0, 0]);
}
