//! Everything that a session builds is already built while the weights load.

use crate::common::{Tiny, greedy, ids, open, run};
use kernels::testing::Switches;
use kernels::{Device, Executor, PlanOptions, Precision};
use model::{Sampling, SessionOptions};

#[test]
fn a_session_that_generates_builds_nothing_that_was_not_prepared() {
    for fast in [false, true] {
        let device = Device::auto().expect("a driver, if only the software one");
        let executor = Executor::from(&device);
        let tiny = Tiny::qwen3().mixed();
        let plan = PlanOptions::plain().precision(if fast { Precision::Fast } else { Precision::F32 }).specialize(fast);
        let options = SessionOptions::default().chunk(16).plan(plan).context(64);
        let checked = open(&tiny.file()).unwrap().check(&executor).unwrap();
        checked.prepare(&options).unwrap().finish();
        let prepared = device.spent().pipelines;
        assert!(prepared > 5, "{prepared} pipelines");
        let mut session = tiny.on(&executor).session(options).unwrap();
        session.feed(&ids(20, 1)).unwrap();
        let sampling = Sampling { repetition_penalty: 1.1, ..Sampling::default() };
        run(&mut session, greedy(3).sampling(sampling));
        assert_eq!(device.spent().pipelines, prepared);
    }
}

#[test]
fn there_is_nothing_to_prepare_for_the_cpu() {
    let checked = open(&Tiny::qwen3().file()).unwrap().check(&Executor::Cpu).unwrap();
    checked.prepare(&SessionOptions::default()).unwrap().finish();
}
