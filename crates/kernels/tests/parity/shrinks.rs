//! A failing case becomes small, and its text makes it again. Shown on faults that are planted in
//! the shader of `rms_norm`.

use super::DEVICE;
use kernels::Device;
use kernels::testing::cases;
use kernels::testing::drawn::{Drawn, Draws, config, holds};
use kernels::testing::kernel::random::{Fill, Gen};
use kernels::testing::parity::Case;
use kernels::testing::sweep::Target;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

const STEM: &str = "rms_norm";

/// The device with a fault in the portable shader.
fn faulty(right: &str, wrong: &str) -> Device {
    let target = Target::all(DEVICE.caps()).into_iter().find(|target| target.shader.label() == STEM).expect("a shader");
    let source = target.shader.source();
    assert_eq!(source.matches(right).count(), 1, "{right}");
    DEVICE.with_source(&target.shader, source.replace(right, wrong))
}

/// The smallest case that proptest finds for a fault.
fn found(device: &Device) -> Drawn {
    let mut runner = TestRunner::new_with_rng(config(200), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    match runner.run(&Draws(vec![STEM]), |drawn| holds(&drawn, device)) {
        Err(TestError::Fail(_, drawn)) => drawn,
        other => panic!("no case fails: {other:?}"),
    }
}

/// Asserts that the case fails with the fault and holds without it.
fn assert_shown_by(drawn: &Drawn, device: &Device) {
    assert!(holds(drawn, device).is_err(), "holds with the fault: {drawn:?}");
    assert!(holds(drawn, &DEVICE).is_ok(), "fails without the fault: {drawn:?}");
}

#[test]
fn a_lost_tail_shrinks_to_one_value_behind_the_workgroup_and_its_literal_makes_it_again() {
    let device = faulty(
        "d < params.dim; d += WG) {\n        let v = x[base + d] / unit;\n",
        "d < WG; d += WG) {\n        let v = x[base + d] / unit;\n",
    );
    // Pasted from the text below.
    #[rustfmt::skip]
    let pasted =
// 1 of 1 rows:
// rms_norm [1, 257] -> [1, 257]
Drawn {
    stem: "rms_norm",
    portable: true,
    split: false,
    seed: 0,
    choices: vec![0 /* 1 */, 0 /* 1 */, 10 /* 257 */, 0 /* 1e-6 */, 0 /* false */, 0 /* false */, 0 /* 0.001 */],
    fills: vec![Fill::Only(256, 257)],
};
    let text = "// 1 of 1 rows:
// rms_norm [1, 257] -> [1, 257]
Drawn {
    stem: \"rms_norm\",
    portable: true,
    split: false,
    seed: 0,
    choices: vec![0 /* 1 */, 0 /* 1 */, 10 /* 257 */, 0 /* 1e-6 */, 0 /* false */, 0 /* false */, 0 /* 0.001 */],
    fills: vec![Fill::Only(256, 257)],
},
";
    let found = found(&device);
    assert_eq!(format!("{found:?}"), text);
    assert_eq!(found, pasted);
    assert_shown_by(&pasted, &device);
}

/// Three heads of one row show it as three rows do.
#[test]
fn a_lost_row_of_the_kernel_shrinks_to_three_zeros() {
    let device = faulty("let base = row * params.dim;", "let base = (row % 2u) * params.dim;");
    let found = found(&device);
    assert_eq!(found.case().input.host, [[0.0; 3]], "{found:?}");
    assert_shown_by(&found, &device);
}

#[test]
fn an_overflow_shrinks_to_one_large_value() {
    let device = faulty("max(reduce_max(largest, lid), 1.0)", "max(0.0 * reduce_max(largest, lid), 1.0)");
    let found = found(&device);
    assert_eq!(found.case().input.host, [[0.5e25]], "{found:?}");
    assert_shown_by(&found, &device);
}

/// Every choice is recorded, and only choices decide the shape.
#[test]
fn cases_are_made_again_from_their_choices() {
    let content = |case: &Case| {
        let mut all = vec![];
        case.content(&mut |part| all.extend_from_slice(part));
        all
    };
    for (stem, make) in cases() {
        for seed in 0..3 {
            let drawn = Drawn::of(stem, seed, None);
            assert!(
                !drawn.choices.is_empty() && drawn.choices.len() < 2000,
                "{stem} {seed}: {} choices",
                drawn.choices.len()
            );
            assert!(content(&drawn.case()) == content(&make(&mut Gen::new(seed))), "{drawn:?}");
        }
    }
}

/// The values of every case are simple on request, and shapes are the smallest. Cases that draw
/// until something holds must still end.
#[test]
fn every_case_can_be_simple() {
    for (stem, _) in cases() {
        for fill in [Fill::Zero, Fill::Equal, Fill::Quarters, Fill::Only(0, 1)] {
            let drawn = Drawn { choices: vec![0; 64], fills: vec![fill; 16], ..Drawn::of(stem, 0, None) };
            assert!(!drawn.case().input.positions.is_empty(), "{stem}");
        }
    }
}

#[test]
fn a_kept_case_is_added_once() {
    let list = include_str!("once_red.rs");
    let drawn = Drawn::of(STEM, 1, None);
    let with = drawn.added_to(list).expect("not in the list");
    let (before, after) =
        with.split_once(&drawn.literal().lines().map(|line| format!("        {line}\n")).collect::<String>()).unwrap();
    assert_eq!(format!("{before}{after}"), list);
    assert!(after.starts_with("    ]\n}"), "at the end");
    assert_eq!(drawn.added_to(&with), None);
}
