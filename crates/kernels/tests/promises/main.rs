//! Promises of other projects about forward and backward, on this adapter: the largest absolute
//! errors that they name, at their shapes and at the shapes that their own tests leave out.
//! `cargo xtask contracts` lists the promises.

mod backward;
mod counts;
mod forward;
mod losses;
mod nf4;
mod training;

use kernels::testing::kernel::random::Gen;
use kernels::{Device, Error};
use std::sync::OnceLock;

/// One device for all tests: drivers have hung when many were created and destroyed at once.
fn device() -> Device {
    static SHARED: OnceLock<Device> = OnceLock::new();
    SHARED.get_or_init(|| Device::auto().expect("an adapter, if only the software one")).clone()
}

/// `len` numbers between -size and size.
fn numbers(len: usize, seed: u32, size: f32) -> Vec<f32> {
    let mut g = Gen::new(seed.into());
    (0..len).map(|_| size * g.unit()).collect()
}

/// Checks that no element is further than `bound` from what is expected.
fn within(what: &str, bound: f64, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let apart = |(got, expected): (&f32, &f32)| (f64::from(*got) - f64::from(*expected)).abs();
    let worst = got.iter().zip(expected).map(apart).fold(0.0, |worst, x| if x <= worst { worst } else { x });
    assert!(worst <= bound, "{what}: an element is {worst:e} away, at most {bound:e}");
}

/// The result of an oracle that writes `len` elements.
fn oracle(len: usize, write: impl FnOnce(&mut [f32])) -> Vec<f32> {
    let mut y = vec![0.0; len];
    write(&mut y);
    y
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

fn is_shape_error<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::Shape { .. } | Error::Bytes { .. })), "{result:?}");
}

/// c[m, n] = sum_k a(m, k) b(k, n), in f64.
fn product([m, n, k]: [usize; 3], a: impl Fn(usize, usize) -> f32, b: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    let sum = |i: usize, j: usize| (0..k).map(|l| f64::from(a(i, l)) * f64::from(b(l, j))).sum::<f64>() as f32;
    (0..m * n).map(|at| sum(at / n, at % n)).collect()
}
