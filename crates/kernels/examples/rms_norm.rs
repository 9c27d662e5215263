//! Runs one kernel on buffers of your own: vectors in, a vector out, compared with the oracle.
//!
//! `cargo run -p kernels --example rms_norm`

use kernels::{Device, Error, run};

fn main() -> Result<(), Error> {
    // Discrete before integrated before software; a software adapter says so in its class.
    let device = Device::auto()?;
    println!("{} ({:?}, {})", device.adapter().name, device.adapter().class, device.adapter().backend);

    // 1000 rows of 4096 elements and one weight for each column.
    let (rows, dim, eps) = (1000, 4096, 1e-6_f32);
    let x: Vec<f32> = (0..rows * dim).map(|i| (i as f32 * 0.37).sin()).collect();
    let w: Vec<f32> = (0..dim).map(|i| 1.0 + 0.001 * i as f32).collect();

    // The kernel is compiled at the first call and kept by the device.
    let y = run::rms_norm(&device, &x, Some(&w), dim, eps)?;
    println!("y[0][..4] = {:?}", &y[..4]);

    // The same formula in plain f64 loops.
    let mut expected = vec![0.0; x.len()];
    cpu_ref::rms_norm(&x, Some(&w), dim, f64::from(eps), &mut expected);
    println!("normalised mean squared error against the oracle: {:.1e}", cpu_ref::nmse(&expected, &y));

    // Slices that do not fit are errors, not panics.
    println!("error of a wrong call: {}", run::rms_norm(&device, &x, Some(&w[1..]), dim, eps).unwrap_err());
    Ok(())
}
