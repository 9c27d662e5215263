//! The profiler on this adapter: every dispatch is listed once, with the work for the rows and
//! positions of the step.

use cpu_ref::{KvType, Mask};
use kernels::Work;
use kernels::ops::{self, Attend};
use kernels::testing::Switches;
use kernels::{
    Counts, Device, Error, Executor, KvState, Lead, Limits, PlanOptions, Recorder, Select, Shape, StateKind, States,
    StepInput, Watch, Weights,
};
use std::sync::{Arc, OnceLock};

const WIDTH: u32 = 64;
const KINDS: [StateKind; 2] = [StateKind::kv(KvType::F16, WIDTH); 2];

/// Appends and attends with one head. Returns the profile of a second run at these positions.
fn profiled(executor: &Executor, positions: &[u32], mask: Mask) -> Result<kernels::Profile, Error> {
    let rows = positions.len() as u32;
    let mut rec = Recorder::new(Counts { step: 8, out: 8 }, &KINDS);
    let x = rec.host_input(0, Shape::new(Lead::Step, 8, WIDTH));
    rec.layer(Some(3));
    let kv = KvState::new(rec.state(0), rec.state(1));
    let kv = ops::kv_append(&mut rec, kv, x, x);
    let y = ops::attention(&mut rec, x, kv, 1, Attend { mask, scale: 0.125, softcap: None });
    rec.output(y);
    let mut states = States::new(executor, &KINDS, 1, 100)?;
    let mut plan = executor.plan(rec, &Arc::new(Weights::new(executor)), &PlanOptions::plain())?;
    let host = vec![vec![0.5; (rows * WIDTH) as usize]];
    let input =
        StepInput { positions: positions.to_vec(), sequences: vec![0; rows as usize], host, ..StepInput::default() };
    plan.run(&mut states, &input, Watch::default())?.wait()?;
    plan.profile(&mut states, &input)
}

/// A device with every feature, even with `WEFT_LIMITS` set, because WebGPU's defaults have no
/// timestamps. All tests share it: drivers have hung when many devices were created and
/// destroyed at once.
fn gpu() -> Executor {
    static SHARED: OnceLock<Device> = OnceLock::new();
    Executor::from(
        SHARED.get_or_init(|| {
            Device::open(&Select::Best, Limits::Adapter).expect("an adapter, if only the software one")
        }),
    )
}

/// The dispatches of one kind.
fn of<'a>(
    profile: &'a kernels::Profile,
    stem: &'a str,
) -> impl Iterator<Item = &'a kernels::testing::exec::profile::Timed> {
    profile.dispatches.iter().filter(move |d| d.label.starts_with(stem))
}

#[test]
fn every_dispatch_is_timed_once_in_order() {
    let profile = profiled(&gpu(), &[0, 1, 2], Mask::Causal).expect("timestamps");
    let (append, attention) = (of(&profile, "kv_append").count(), of(&profile, "attention").count());
    assert_eq!(append, 1);
    assert!(attention >= 1 && profile.dispatches.len() == append + attention, "{profile}");
    assert!(
        profile.dispatches.iter().all(|d| d.layer == Some(3) && d.nanoseconds >= 0.0 && d.nanoseconds < 1e10),
        "{profile}"
    );
    assert!(profile.nanoseconds() > 0.0, "{profile}");
}

#[test]
fn keys_and_values_count_at_the_positions_of_the_step() {
    let (row, executor) = (u64::from(WIDTH) * 2, gpu());
    let work = |positions: &[u32], mask| {
        let profile = profiled(&executor, positions, mask).expect("timestamps");
        of(&profile, "attention").map(|d| d.work).fold(Work::default(), Work::plus)
    };
    // A row at position n sees n + 1 keys and values. Each costs two operations per element for the
    // key and two for the value.
    let (near, far) = (work(&[9], Mask::Causal), work(&[59], Mask::Causal));
    assert_eq!(far.bytes - near.bytes, 50 * 2 * row);
    assert_eq!((near.flops, far.flops), (10 * 4 * u64::from(WIDTH), 60 * 4 * u64::from(WIDTH)));
    // A window of 10 hides all keys except those that the row at position 9 sees.
    assert_eq!(work(&[59], Mask::Window(10)), near);
    // Rows of one sequence share the keys and values that they read.
    let both = work(&[9, 10], Mask::Causal);
    assert_eq!(both.flops, (10 + 11) * 4 * u64::from(WIDTH));
    assert!(both.bytes < 2 * near.bytes, "{both:?} {near:?}");
}

#[test]
fn what_is_appended_is_counted_in_the_states_type() {
    let profile = profiled(&gpu(), &[0, 1, 2], Mask::Causal).expect("timestamps");
    let work = of(&profile, "kv_append").next().expect("one").work;
    let (rows, tensors, ids) = (3 * u64::from(WIDTH), 2, 3 * 4 * 2);
    assert_eq!(work.bytes, rows * 4 * tensors + ids + rows * 2 * tensors);
}

#[test]
fn the_table_sums_the_dispatches_of_a_kernel() {
    let mut profile = profiled(&gpu(), &[0], Mask::Causal).expect("timestamps");
    profile.extend(profile.clone());
    let totals = profile.by_kernel();
    assert_eq!(totals.iter().map(|t| t.count).sum::<usize>(), profile.dispatches.len());
    assert!((totals.iter().map(|t| t.share).sum::<f64>() - 1.0).abs() < 1e-9);
    let text = profile.to_string();
    assert!(text.lines().count() == totals.len() + 3 && text.contains("kv_append") && text.contains("GB/s"), "{text}");
}

#[test]
fn dispatches_account_for_the_step_and_for_nothing_beyond_it() {
    let profile = profiled(&gpu(), &[0, 1, 2, 3], Mask::Causal).expect("timestamps");
    assert!(profile.step_nanoseconds > 0.0 && profile.stamp_nanoseconds >= 0.0, "{profile}");
    // If timestamps cost nothing, the times of the runs differ.
    assert!(profile.attributed() > 0.3 && profile.attributed() < 1.0 + 1e-6, "{profile}");
}

#[test]
fn executors_without_timestamps_say_so() {
    assert!(matches!(profiled(&Executor::Cpu, &[0], Mask::Causal), Err(Error::NoTimestamps { .. })));
    let Executor::Gpu(device) = gpu() else { unreachable!("a device") };
    let caps = kernels::Caps { timestamps: false, ..device.caps().clone() };
    let executor = Executor::Gpu(device.with_caps(caps));
    assert!(matches!(profiled(&executor, &[0], Mask::Causal), Err(Error::NoTimestamps { .. })));
}
