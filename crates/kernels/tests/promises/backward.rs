//! Derivatives.

use crate::{device, dot, is_shape_error, numbers, oracle, product, within};
use cpu_ref::Mask;
use gguf::GgmlType;
use kernels::ops::Attend;
use kernels::run::{self, Heads, Matrix};
use kernels::testing::kernel::random::Gen;
use kernels::{Executor, RopeTable};

#[test]
fn silu_backward_up_to_90_and_in_more_workgroups_than_a_grid_has() {
    let on = device();
    let x: Vec<f32> = (-50..50).map(|i| i as f32 / 10.0).collect();
    let dx = run::silu_backward(&on, &x, &[1.0; 100]).expect("fits");
    assert!((dx[50] - 0.5).abs() <= 1e-5, "{} at 0", dx[50]);
    within("silu from -5 to 4.9", 1e-5, &dx, &oracle(100, |dx| cpu_ref::silu_backward(&x, &[1.0; 100], dx)));
    is_shape_error(run::silu_backward(&on, &x, &[1.0; 99]));
    is_shape_error(run::silu_backward(&on, &x, &[1.0; 101]));
    // Golden ratios spread over the range; both ends are among them.
    let n = 65_536 * 256 + 77;
    let mut x: Vec<f32> = (0..n).map(|i| 90.0 * (2.0 * (i as f64 * 0.618_033_988_75).fract() - 1.0) as f32).collect();
    (x[0], x[n - 1]) = (-90.0, 90.0);
    let dy = vec![-0.75; n];
    let dx = run::silu_backward(&on, &x, &dy).expect("fits");
    within("silu from -90 to 90", 1e-5, &dx, &oracle(n, |dx| cpu_ref::silu_backward(&x, &dy, dx)));
}

#[test]
fn geglu_backward_has_the_slope_of_gelu_beyond_10_as_well() {
    let gate: Vec<f32> = (-32..32).map(|i| i as f32 / 3.0).chain([-90.0, -50.0, -20.0, 20.0, 50.0, 90.0]).collect();
    let (up, dy) = (numbers(gate.len(), 1, 1.0), numbers(gate.len(), 2, 1.0));
    let [dgate, dup] = run::geglu_backward(&device(), &gate, &up, &dy).expect("fits");
    let [mut of_gate, mut of_up] = [(); 2].map(|()| vec![0.0; gate.len()]);
    cpu_ref::geglu_backward(&gate, &up, &dy, &mut of_gate, &mut of_up);
    within("by the gate", 1e-5, &dgate, &of_gate);
    within("by the other operand", 1e-5, &dup, &of_up);
    // Where the slope is one or zero.
    for (at, &far) in gate.iter().enumerate().filter(|(_, x)| x.abs() >= 20.0) {
        let slope = f32::from(u8::from(far > 0.0));
        within("far from zero", 1e-5, &[dgate[at], dup[at]], &[dy[at] * up[at] * slope, dy[at] * far * slope]);
    }
}

#[test]
fn products_of_any_dimensions_and_their_derivatives() {
    let on = device();
    let dims = [1, 15, 16, 17, 33, 63, 64, 65, 97];
    let turned = |by: usize| dims.iter().cycle().skip(by).step_by(2).copied().take(dims.len());
    let ragged = turned(0).zip(turned(3)).zip(turned(7)).map(|((m, n), k)| [m, n, k]);
    let cubes = dims.map(|d| [d; 3]);
    for [m, n, k] in ragged.chain(cubes).chain([[4, 6, 8], [130, 300, 1000], [200, 3, 2048]]) {
        let (x, w, dy) = (numbers(m * k, 1, 1.0), numbers(n * k, 2, 1.0), numbers(m * n, 3, 1.0));
        let what = format!("{m} by {n} by {k}");
        let bound = if m.max(n).max(k) < 100 { 1e-5 } else { 1e-4 };
        let matrix = Matrix::f32(&w, n, k);
        let y = run::matmul(&on, &x, matrix).expect("fits");
        let expected = product([m, n, k], |i, l| x[i * k + l], |l, j| w[j * k + l]);
        within(&what, bound, &y, &expected);
        // alpha A B.
        let scaled: Vec<f32> = expected.iter().map(|y| -0.37 * y).collect();
        within(&format!("{what}, scaled"), bound, &run::scale(&on, &y, -0.37).expect("fits"), &scaled);
        let dx = run::matmul_input(&on, &dy, matrix).expect("fits");
        within(
            &format!("{what} by the input"),
            bound,
            &dx,
            &product([m, k, n], |i, j| dy[i * n + j], |j, l| w[j * k + l]),
        );
        let dw = run::matmul_weight(&on, &dy, &x, n, k).expect("fits");
        within(
            &format!("{what} by the weight"),
            bound,
            &dw,
            &product([n, k, m], |j, i| dy[i * n + j], |i, l| x[i * k + l]),
        );
    }
    let x = [0.0; 12];
    is_shape_error(run::matmul(&on, &x, Matrix::f32(&x, 2, 5)));
    is_shape_error(run::matmul_input(&on, &x, Matrix::f32(&x[..10], 5, 2)));
    is_shape_error(run::matmul_weight(&on, &x, &x[..9], 3, 2));
}

#[test]
fn derivatives_by_the_input_of_k_quants_in_every_block_of_a_row() {
    let on = device();
    for ty in [GgmlType::Q4_K, GgmlType::Q6_K] {
        for (rows, n, k) in [(1, 16, 256), (3, 16, 512), (33, 17, 768)] {
            let bytes = Gen::new(5).weight(ty, n as u32, k as u32);
            let mut w = vec![0.0; n * k];
            gguf::dequantize(ty, &bytes, &mut w).expect("whole blocks");
            let dy = numbers(rows * n, 4, 1.0);
            let dx = run::matmul_input(&on, &dy, Matrix { ty, rows: n, cols: k, bytes: &bytes }).expect("fits");
            within(&format!("{ty}, {k}"), 1e-4, &dx, &product([rows, k, n], |i, j| dy[i * n + j], |j, l| w[j * k + l]));
        }
    }
}

#[test]
fn rotations_turn_by_the_angle_and_back() {
    let on = device();
    for (heads, dim, rotated, positions) in [
        (2, 4, 4, vec![0, 1, 2]),
        (1, 16, 16, vec![11]),
        (5, 128, 64, vec![3, 70_000, 1]),
        (3, 80, 80, (90..131).collect::<Vec<u32>>()),
    ] {
        let (table, n) = (RopeTable::new(rotated as u32, 1e4), positions.len() * heads * dim);
        let (x, dy) = (numbers(n, 1, 1.0), numbers(n, 2, 1.0));
        let y = run::rope(&on, &x, &positions, heads, &table).expect("fits");
        let dx = run::rope_backward(&on, &dy, &positions, heads, &table).expect("fits");
        // The angles of neither kernel's table: element i turns with element i + rotated / 2.
        let half = rotated / 2;
        let turned = |x: &[f32], sign: f64| {
            let mut y = x.to_vec();
            for (row, at) in (0..n / dim).flat_map(|row| (0..half).map(move |i| (row, i))) {
                let angle = f64::from(positions[row / heads]) * 1e4_f64.powf(-2.0 * at as f64 / rotated as f64);
                let [a, b] = [at, at + half].map(|i| f64::from(x[row * dim + i]));
                y[row * dim + at] = (a * angle.cos() - sign * b * angle.sin()) as f32;
                y[row * dim + at + half] = (b * angle.cos() + sign * a * angle.sin()) as f32;
            }
            y
        };
        let what = format!("{heads} heads of {dim}");
        within(&what, 1e-5, &y, &turned(&x, 1.0));
        within(&format!("{what} back"), 1e-5, &dx, &turned(&dy, -1.0));
        within(
            &format!("{what} there and back"),
            1e-5,
            &run::rope_backward(&on, &y, &positions, heads, &table).expect("fits"),
            &x,
        );
        let (there, back) = (dot(&y, &dy), dot(&x, &dx));
        assert!(
            (there - back).abs() <= 1e-6 * (dot(&x, &x) * dot(&dy, &dy)).sqrt(),
            "{what}: <F x, y> = {there}, <x, F' y> = {back}"
        );
    }
}

#[test]
fn rms_norm_backward_of_short_and_long_rows() {
    let on = device();
    for (rows, dim, eps) in
        [(3, 8, 1e-5_f32), (1, 64, 1e-6), (4, 32, 1e-6), (300, 257, 1e-5), (5, 1021, 1e-6), (2, 4096, 1e-6)]
    {
        let [x, dy] = [1, 2].map(|seed| numbers(rows * dim, seed, 2.0));
        let (w, wide) = (numbers(dim, 3, 1.0), f64::from(eps));
        let what = format!("{rows} rows of {dim}");
        for w in [Some(&w[..]), None] {
            let dx = run::rms_norm_backward(&on, &x, w, &dy, dim, eps).expect("fits");
            within(&what, 1e-5, &dx, &oracle(rows * dim, |dx| cpu_ref::rms_norm_backward(&x, w, &dy, dim, wide, dx)));
        }
        let dw = run::rms_norm_weight_backward(&on, &x, &dy, dim, eps).expect("fits");
        let bound = if rows < 100 { 1e-5 } else { 1e-4 };
        within(
            &format!("{what}, weight"),
            bound,
            &dw,
            &oracle(dim, |dw| cpu_ref::rms_norm_weight_backward(&x, &dy, dim, wide, dw)),
        );
    }
}

/// y = W x + s B A x: the derivatives by A, B and x.
#[test]
fn low_rank_factors_and_their_derivatives() {
    let (on, s) = (device(), 0.5);
    for (rows, n, k, r) in [(1, 12, 16, 4), (37, 70, 100, 8)] {
        let [w, x, dy] = [(1, n * k), (2, rows * k), (3, rows * n)].map(|(seed, len)| numbers(len, seed, 0.5));
        let [a, b] = [(4, r * k), (5, n * r)].map(|(seed, len)| numbers(len, seed, 0.5));
        let z = product([rows, r, k], |i, l| x[i * k + l], |l, j| a[j * k + l]);
        let dz = product([rows, r, n], |i, j| s * dy[i * n + j], |j, l| b[j * r + l]);
        let sdy = run::scale(&on, &dy, s).expect("fits");
        let of_z = run::matmul(&on, &x, Matrix::f32(&a, r, k)).expect("fits");
        let of_dz = run::matmul_input(&on, &sdy, Matrix::f32(&b, n, r)).expect("fits");
        within("z = A x", 1e-5, &of_z, &z);
        within("dz = s B^T dy", 1e-5, &of_dz, &dz);
        let db = run::matmul_weight(&on, &sdy, &of_z, n, r).expect("fits");
        within("dB = s dy z^T", 1e-5, &db, &product([n, r, rows], |j, i| s * dy[i * n + j], |i, l| z[i * r + l]));
        let da = run::matmul_weight(&on, &of_dz, &x, r, k).expect("fits");
        within("dA = dz x^T", 1e-5, &da, &product([r, k, rows], |j, i| dz[i * r + j], |i, l| x[i * k + l]));
        let [own, low] = [(&dy, Matrix::f32(&w, n, k)), (&of_dz, Matrix::f32(&a, r, k))]
            .map(|(dy, w)| run::matmul_input(&on, dy, w));
        let dx = run::add(&on, &own.expect("fits"), &low.expect("fits")).expect("fits");
        let own = product([rows, k, n], |i, j| dy[i * n + j], |j, l| w[j * k + l]);
        let low = product([rows, k, r], |i, j| dz[i * r + j], |j, l| a[j * k + l]);
        within("dx = W^T dy + A^T dz", 1e-5, &dx, &own.iter().zip(&low).map(|(a, b)| a + b).collect::<Vec<_>>());
    }
}

#[test]
fn attention_backward_of_one_query_and_many_with_windows() {
    let on = device();
    for (heads, kv_heads, dim, rows) in [(2, 1, 8, 6), (4, 2, 64, 70), (1, 1, 80, 33)] {
        let [q, dy] = [1, 2].map(|seed| numbers(rows * heads * dim, seed, 1.0));
        let [k, v] = [3, 4].map(|seed| numbers(rows * kv_heads * dim, seed, 1.0));
        for (mask, softcap) in
            [(Mask::Causal, None), (Mask::Window(4), None), (Mask::Window(40), Some(5.0)), (Mask::Bidirectional, None)]
        {
            let of = Heads { heads, kv_heads, dim, attend: Attend { mask, scale: 1.0 / (dim as f32).sqrt(), softcap } };
            let backward = |on: Executor, k: &[f32]| run::attention_backward(on, [&q, k, &v, &dy], of).expect("fits");
            let [got, expected] = [Executor::from(&on), Executor::Cpu].map(|on| backward(on, &k));
            for (what, (got, expected)) in ["dq", "dk", "dv"].iter().zip(got.iter().zip(&expected)) {
                within(&format!("{what}, {heads} heads of {dim}, {mask:?}"), 1e-5, got, expected);
            }
            if mask == Mask::Causal {
                // Keys behind a row change no bit of its gradient.
                let (mut changed, kept) = (k.clone(), rows / 2);
                changed[kept * kv_heads * dim..].iter_mut().for_each(|k| *k = 3.0 - *k);
                let bits = |dq: &[f32]| dq[..kept * heads * dim].iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let other = backward(Executor::from(&on), &changed);
                assert!(bits(&other[0]) == bits(&got[0]) && other[0] != got[0], "{heads} heads of {dim}");
            }
        }
    }
}
