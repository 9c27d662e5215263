//! Measures this adapter: every rate is a number that hardware can have, and the measurement is
//! quick.

use kernels::Device;
use kernels::measure::measure;
use std::time::{Duration, Instant};

#[test]
fn rates_are_plausible_and_measured_in_seconds() {
    let device = Device::auto().expect("an adapter, if only the software one");
    let began = Instant::now();
    let measured = measure(&device).expect("a device that works");
    let taken = began.elapsed();
    let within = |x: f64, low: f64, high: f64| x > low && x < high;
    assert!(within(measured.read_gb_per_s, 0.01, 1e5), "{measured:?}");
    assert!(within(measured.matrix_tflop_per_s, 1e-6, 1e4), "{measured:?}");
    let matrices = measured.cooperative_tflop_per_s;
    assert!(
        matrices.map_or(!device.caps().cooperative, |rate| rate > measured.matrix_tflop_per_s && rate < 1e5),
        "{measured:?}"
    );
    assert!(within(measured.dispatch_us, 0.05, 1e5), "{measured:?}");
    assert!(within(measured.transfer.write_gb_per_s, 0.01, 1e4), "{measured:?}");
    assert!(within(measured.transfer.read_gb_per_s, 0.01, 1e4), "{measured:?}");
    assert!(within(measured.transfer.round_trip_us, 0.5, 1e6), "{measured:?}");
    assert!(taken < Duration::from_secs(20), "{taken:?}");
}
