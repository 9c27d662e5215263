//! Plans as lowered for a device, run on the host: they round as the kernels do. Without rounding
//! they give the same values as the recording.

use kernels::testing::cases;
use kernels::testing::kernel::random::Gen;
use kernels::testing::kinds::card;
use kernels::{Caps, Class};

/// Devices that together use every lowering rule, whether or not this machine has them.
fn devices() -> [Caps; 2] {
    [false, true].map(|cooperative| card(Class::Discrete, 32, cooperative))
}

/// The parts of the lowered operations, run one after another, compute what was recorded, except
/// for the rounding of the plan.
#[test]
fn the_parts_of_a_plan_compute_what_was_recorded() {
    for (stem, make) in cases() {
        for seed in 0..6 {
            let case = make(&mut Gen::new(seed));
            for caps in devices() {
                let outcome = case.compare_reference(&caps).unwrap_or_else(|e| panic!("{stem} with seed {seed}: {e}"));
                assert!(outcome.holds(), "{stem} with seed {seed}: {:?}", outcome.worst);
            }
        }
    }
}
