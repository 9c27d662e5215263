//! Derivatives on slices: results equal the oracles' on this adapter, and slices that do not fit
//! are errors.

use cpu_ref::{AdamwSpec, AdamwStep, Adapted, Mask};
use gguf::GgmlType;
use kernels::ops::Attend;
use kernels::run::{self, Heads, Matrix};
use kernels::testing::kernel::random::Gen;
use kernels::{Device, Error, Executor, RopeTable};
use std::sync::OnceLock;

const BOUND: f64 = 1e-10;

/// One device for all tests: drivers have hung when many were created and destroyed at once.
fn device() -> Device {
    static SHARED: OnceLock<Device> = OnceLock::new();
    SHARED.get_or_init(|| Device::auto().expect("an adapter, if only the software one")).clone()
}

/// Values between 1/4 and 4, so that no sum is small by cancellation.
fn values(seed: u64, n: usize) -> Vec<f32> {
    let mut g = Gen::new(seed);
    (0..n).map(|_| 4.0f32.powf(g.unit())).collect()
}

/// Compares the kernel's result with the oracle's.
fn equal(what: &str, got: &[f32], oracle: impl FnOnce(&mut [f32])) {
    let mut expected = vec![f32::NAN; got.len()];
    oracle(&mut expected);
    let nmse = cpu_ref::nmse(&expected, got);
    assert!(nmse <= BOUND, "{what}: {nmse}");
}

/// The same for two results.
fn equal2(what: &str, [a, b]: &[Vec<f32>; 2], oracle: impl FnOnce(&mut [f32], &mut [f32])) {
    let (mut first, mut second) = (vec![f32::NAN; a.len()], vec![f32::NAN; b.len()]);
    oracle(&mut first, &mut second);
    equal(what, a, |y| y.copy_from_slice(&first));
    equal(what, b, |y| y.copy_from_slice(&second));
}

/// The same for sums, which begin as zeros.
fn equal_sum(what: &str, got: &[f32], oracle: impl FnOnce(&mut [f32])) {
    equal(what, got, |g| {
        g.fill(0.0);
        oracle(g);
    });
}

#[test]
fn elements() {
    let (on, n) = (device(), 1021);
    let [x, up, dy] = [1, 2, 3].map(|seed| values(seed, n));
    equal("silu", &run::silu_backward(&on, &x, &dy).expect("fits"), |dx| cpu_ref::silu_backward(&x, &dy, dx));
    equal("relu", &run::relu_backward(&on, &x, &dy).expect("fits"), |dx| cpu_ref::relu_backward(&x, &dy, dx));
    equal("gelu", &run::gelu_backward(&on, &x, &dy).expect("fits"), |dx| cpu_ref::gelu_backward(&x, &dy, dx));
    equal("softcap", &run::softcap_backward(&on, &x, &dy, 9.0).expect("fits"), |dx| {
        cpu_ref::softcap_backward(&x, &dy, 9.0, dx)
    });
    equal2("swiglu", &run::swiglu_backward(&on, &x, &up, &dy).expect("fits"), |a, b| {
        cpu_ref::swiglu_backward(&x, &up, &dy, a, b)
    });
    equal2("geglu", &run::geglu_backward(&on, &x, &up, &dy).expect("fits"), |a, b| {
        cpu_ref::geglu_backward(&x, &up, &dy, a, b)
    });
    let y = run::dropout(&on, &x, [4, 5], 6, 0.25).expect("fits");
    equal("dropout", &y, |y| cpu_ref::dropout(&x, [4, 5], 6, 0.25, y));
}

#[test]
fn rows() {
    let (on, dim, rows) = (device(), 257, 3);
    let [x, like, dy] = [11, 12, 13].map(|seed| values(seed, rows * dim));
    let (w, eps) = (values(14, dim), f64::from(1e-6_f32));
    let dx = run::layer_norm_backward(&on, &x, Some(&w), &dy, dim, 1e-6).expect("fits");
    equal("layer_norm", &dx, |dx| cpu_ref::layer_norm_backward(&x, Some(&w), &dy, dim, eps, dx));
    let dx = run::rms_norm_backward(&on, &x, Some(&w), &dy, dim, 1e-6).expect("fits");
    equal("rms_norm", &dx, |dx| cpu_ref::rms_norm_backward(&x, Some(&w), &dy, dim, eps, dx));
    let g = run::rms_norm_weight_backward(&on, &x, &dy, dim, 1e-6).expect("fits");
    equal_sum("rms_norm weight", &g, |g| cpu_ref::rms_norm_weight_backward(&x, &dy, dim, eps, g));
    let y = run::softmax(&on, &x, dim).expect("fits");
    equal("softmax", &run::softmax_backward(&on, &y, &dy, dim).expect("fits"), |dx| {
        cpu_ref::softmax_backward(&y, &dy, dim, dx)
    });
    let y = run::log_softmax(&on, &x, dim).expect("fits");
    let dx = run::log_softmax_backward(&on, &y, &dy, dim).expect("fits");
    equal("log_softmax", &dx, |dx| cpu_ref::log_softmax_backward(&y, &dy, dim, dx));
    let results = run::match_rms_backward(&on, &x, &like, &dy, dim, 1e-5).expect("fits");
    equal2("match_rms", &results, |a, b| cpu_ref::match_rms_backward(&x, &like, &dy, dim, 1e-5, a, b));
    let y = run::gaussian_top_k(&on, &x, dim, 0.5).expect("fits");
    let dx = run::gaussian_top_k_backward(&on, &x, &y, &dy, dim, 0.5).expect("fits");
    equal("gaussian_top_k", &dx, |dx| cpu_ref::gaussian_top_k_backward(&x, &y, &dy, dim, 0.5, dx));
    let gate = values(15, rows);
    let [dx, dgate] = run::mul_sigmoid_backward(&on, &x, &gate, &dy, dim).expect("fits");
    equal("mul_sigmoid", &dx, |dx| cpu_ref::mul_sigmoid(&dy, &gate, dx));
    equal("mul_sigmoid gate", &dgate, |dgate| cpu_ref::mul_sigmoid_backward(&x, &gate, &dy, dgate));
    let c = values(16, rows * 2);
    let (dx, dc) = run::add_weighted_backward(&on, &[&x, &like], &c, &dy, dim, 1.0).expect("fits");
    for (first, dx) in dx.iter().enumerate() {
        let weights = cpu_ref::RowWeights { c: &c, columns: 2, first, shift: 1.0 };
        equal("add_weighted", dx, |dx| cpu_ref::add_weighted_backward(&dy, weights, dim, dx));
    }
    equal("add_weighted weights", &dc, |dc| cpu_ref::add_weighted_backward_c(&dy, &[&x, &like], dim, dc));
    equal_sum("bias", &run::column_sum(&on, &dy, None, dim).expect("fits"), |g| cpu_ref::column_sum(&dy, None, g));
    equal_sum("factor", &run::column_sum(&on, &dy, Some(&x), dim).expect("fits"), |g| {
        cpu_ref::column_sum(&dy, Some(&x), g)
    });
}

#[test]
fn products_and_rotations() {
    let (on, n, k, rows) = (device(), 9, 512, 5);
    let dy = values(21, rows * n);
    for ty in [GgmlType::F16, GgmlType::Q4_K] {
        let bytes = Gen::new(22).weight(ty, n as u32, k as u32);
        let dx = run::matmul_input(&on, &dy, Matrix { ty, rows: n, cols: k, bytes: &bytes }).expect("fits");
        equal("matmul_input", &dx, |dx| cpu_ref::matmul_input(&cpu_ref::Rows::new(ty, k, &bytes), &dy, dx));
    }
    let x = values(23, rows * k);
    equal_sum("matmul_weight", &run::matmul_weight(&on, &dy, &x, n, k).expect("fits"), |g| {
        cpu_ref::matmul_weight(&dy, &x, n, k, g)
    });
    let (heads, positions, table) = (3, [0, 7, 100_000], RopeTable::new(32, 1e6));
    let dy = values(24, 3 * heads * 64);
    let mut turns = vec![0.0; 3 * 32];
    cpu_ref::rope_rows(
        &cpu_ref::RopeSpec { dim: 32, base: 1e6, scale: 1.0, factors: None, magnitude: 1.0 },
        &positions,
        &mut turns,
    );
    let dx = run::rope_backward(&on, &dy, &positions, heads, &table).expect("fits");
    equal("rope", &dx, |dx| cpu_ref::rope_backward(&dy, &turns, heads, 64, dx));
}

fn heads(mask: Mask) -> Heads {
    Heads { heads: 4, kv_heads: 2, dim: 64, attend: Attend { mask, scale: 0.125, softcap: None } }
}

#[test]
fn attention() {
    let (on, t) = (device(), 21);
    let [q, dy] = [31, 32].map(|seed| values(seed, t * 256));
    let [k, v] = [33, 34].map(|seed| values(seed, t * 128));
    for mask in [Mask::Causal, Mask::Window(6), Mask::Bidirectional] {
        let [gpu, cpu] = [Executor::from(&on), Executor::Cpu]
            .map(|on| run::attention_backward(on, [&q, &k, &v, &dy], heads(mask)).expect("fits"));
        for (what, (got, expected)) in ["dq", "dk", "dv"].iter().zip(gpu.iter().zip(&cpu)) {
            equal(what, got, |y| y.copy_from_slice(expected));
        }
        // The oracle of the values: dv = p^T dy, and the probabilities of a row sum to 1.
        let [of_dv, of_dy] = [&cpu[2], &dy].map(|x| x.iter().map(|&x| f64::from(x)).sum::<f64>());
        assert!((of_dv / of_dy - 1.0).abs() < 1e-5, "{mask:?}: {of_dv} and {of_dy}");
    }
}

#[test]
fn experts_in_few_rows_and_in_many() {
    let (on, count, dim, each) = (device(), 5_usize, 36_usize, 20_usize);
    let w = values(41, count * each * dim);
    for rows in [1_usize, 70] {
        let logits: Vec<f32> = values(42, rows * count);
        let chosen = run::route(&on, &logits, count, 3, true).expect("fits");
        let ids: Vec<u32> = chosen.iter().flatten().map(|c| c.0).collect();
        let weights: Vec<f32> = chosen.iter().flatten().map(|c| c.1).collect();
        let dweights = values(43, rows * 3);
        let dlogits = run::route_backward(&on, &logits, count, &ids, &dweights, 3, true).expect("fits");
        let spec = cpu_ref::RouteSpec { experts: count, chosen: 3, normalize: true, scale: None };
        equal("route", &dlogits, |d| cpu_ref::route_backward(&spec, &logits, &ids, &dweights, d));
        let dy = values(44, rows * 3 * each);
        let dx = run::matmul_experts_input(&on, &dy, Matrix::f32(&w, count * each, dim), 5, &ids, 3).expect("fits");
        let mut slots = vec![0.0; rows * 3 * dim];
        let matrix = cpu_ref::Rows::new(GgmlType::F32, dim, bytemuck::cast_slice(&w));
        cpu_ref::matmul_experts_input(&matrix, each, 0..each, &ids, &dy, &mut slots);
        equal("matmul_experts", &dx, |dx| cpu_ref::sum_slots(&slots, 3, dim, dx));
        let (x, dy) = (values(45, rows * 3 * dim), values(46, rows * dim));
        let results = run::combine_experts_backward(&on, &x, &weights, &dy, 3, dim).expect("fits");
        equal2("combine_experts", &results, |a, b| cpu_ref::combine_experts_backward(&x, &weights, &dy, dim, a, b));
    }
}

#[test]
fn losses_rows_and_tables() {
    let (on, vocabulary, rows, dim) = (device(), 300, 4, 33);
    let (logits, targets, weights) = (values(51, rows * vocabulary), [7, 299, 300, 0], values(52, rows));
    let losses = run::cross_entropy(&on, &logits, &targets, vocabulary).expect("fits");
    equal("cross_entropy", losses.as_flattened(), |y| cpu_ref::cross_entropy(&logits, &targets, y));
    let d = run::cross_entropy_backward(&on, &logits, &targets, &weights, vocabulary).expect("fits");
    equal("cross_entropy_backward", &d, |d| {
        cpu_ref::cross_entropy_backward(&logits, &targets, &weights, losses.as_flattened(), d)
    });
    let (dy, ids) = (values(53, rows * dim), [2, 0, 2, 4]);
    let g = run::embed_backward(&on, &dy, &ids, 5, dim).expect("fits");
    equal_sum("embed", &g, |g| cpu_ref::embed_backward(&dy, &ids, dim, g));
    let dx = run::gather_rows_backward(&on, &dy, &[0, 2, 2, 5], 7, dim).expect("fits");
    equal("gather_rows", &dx, |dx| cpu_ref::gather_rows_backward(&dy, &[0, 2, 2, 5], dim, dx));
}

#[test]
fn a_step_of_an_optimizer() {
    let (on, n) = (device(), 1021);
    let gradient = values(61, n);
    let squares = run::sum_squares(&on, &gradient).expect("fits");
    assert!((f64::from(squares) / cpu_ref::sum_squares(&[&gradient]) - 1.0).abs() < 1e-6, "{squares}");
    let spec = AdamwSpec { beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 0.01 };
    let start = [62, 63, 64].map(|seed| values(seed, n));
    let stepped = |squares: f32| {
        let [mut p, mut m, mut v] = start.clone();
        run::adamw(&on, spec, (0.1, 1.0, 3), squares, &gradient, Adapted { p: &mut p, m: &mut m, v: &mut v })
            .expect("fits");
        [p, m, v]
    };
    let [mut p, mut m, mut v] = start.clone();
    cpu_ref::adamw(
        &spec,
        &AdamwStep::new(&spec, 0.1, 1.0, 3),
        squares,
        &gradient,
        Adapted { p: &mut p, m: &mut m, v: &mut v },
    );
    for (got, expected) in stepped(squares).iter().zip([p, m, v]) {
        equal("adamw", got, |y| y.copy_from_slice(&expected));
    }
    for squares in [f32::NAN, f32::INFINITY] {
        assert_eq!(stepped(squares), start, "a norm of {squares}");
    }
}

/// The name and the numbers of a shape error.
fn shape<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, usize, usize) {
    match result {
        Err(Error::Shape { name, expected, found, .. } | Error::Bytes { name, expected, found, .. }) => {
            (name, expected, found)
        }
        other => panic!("no shape error: {other:?}"),
    }
}

#[test]
fn slices_that_do_not_fit_are_shape_errors() {
    let (on, x) = (Executor::Cpu, [1.0; 12]);
    assert_eq!(shape(run::silu_backward(&on, &x, &x[..11])), ("dy", 12, 11));
    assert_eq!(shape(run::relu_backward(&on, &x, &x[..11])), ("dy", 12, 11));
    assert_eq!(shape(run::layer_norm_backward(&on, &x, Some(&x[..3]), &x, 4, 1e-6)), ("w", 4, 3));
    assert_eq!(shape(run::gelu_backward(&on, &x, &x[..11])), ("dy", 12, 11));
    assert_eq!(shape(run::softcap_backward(&on, &x, &x[..11], 1.0)), ("dy", 12, 11));
    assert_eq!(shape(run::swiglu_backward(&on, &x, &x, &x[..11])), ("dy", 12, 11));
    assert_eq!(shape(run::geglu_backward(&on, &x, &x[..11], &x)), ("up", 12, 11));
    assert_eq!(shape(run::rms_norm_backward(&on, &x, None, &x, 5, 1e-6)), ("x", 10, 12));
    assert_eq!(shape(run::rms_norm_backward(&on, &x, Some(&x[..3]), &x, 4, 1e-6)), ("w", 4, 3));
    assert_eq!(shape(run::rms_norm_weight_backward(&on, &x, &x[..8], 4, 1e-6)), ("dy", 12, 8));
    assert_eq!(shape(run::softmax_backward(&on, &x, &x[..8], 4)), ("dy", 12, 8));
    assert_eq!(shape(run::log_softmax_backward(&on, &x, &x[..8], 4)), ("dy", 12, 8));
    assert_eq!(shape(run::match_rms_backward(&on, &x, &x[..8], &x, 4, 1.0)), ("like", 12, 8));
    assert_eq!(shape(run::gaussian_top_k_backward(&on, &x, &x, &x[..8], 4, 1.0)), ("dy", 12, 8));
    assert_eq!(shape(run::mul_sigmoid_backward(&on, &x, &x[..2], &x, 4)), ("gate", 3, 2));
    assert_eq!(shape(run::add_weighted_backward(&on, &[&x, &x], &x[..3], &x, 4, 0.0)), ("c", 6, 3));
    assert_eq!(shape(run::column_sum(&on, &x, Some(&x[..8]), 4)), ("b", 12, 8));
    assert_eq!(shape(run::matmul_input(&on, &x, Matrix::f32(&x[..10], 5, 2))), ("dy", 10, 12));
    assert_eq!(shape(run::matmul_weight(&on, &x, &x[..9], 3, 2)), ("x", 8, 9));
    assert_eq!(shape(run::rope_backward(&on, &x, &[0, 1, 2, 3, 4], 1, &RopeTable::new(2, 1e4))), ("dy", 10, 12));
    let wide = [0.0; 256];
    assert_eq!(
        shape(run::attention_backward(&on, [&wide, &wide[..128], &wide[..127], &wide], heads(Mask::Causal))),
        ("v", 128, 127)
    );
    assert_eq!(shape(run::route_backward(&on, &x, 4, &[0; 6], &x[..5], 2, true)), ("dweights", 6, 5));
    assert_eq!(shape(run::matmul_experts_input(&on, &x, Matrix::f32(&x, 4, 3), 2, &[0; 5], 2)), ("choices", 6, 5));
    assert_eq!(shape(run::combine_experts_backward(&on, &x, &x[..5], &x[..6], 2, 2)), ("weights", 6, 5));
    assert_eq!(shape(run::cross_entropy(&on, &x, &[0; 2], 4)), ("targets", 3, 2));
    assert_eq!(shape(run::cross_entropy_backward(&on, &x, &[0; 3], &x[..2], 4)), ("weights", 3, 2));
    assert_eq!(shape(run::embed_backward(&on, &x, &[0; 2], 3, 4)), ("ids", 3, 2));
    assert_eq!(shape(run::gather_rows_backward(&on, &x, &[0, 1], 3, 4)), ("dy", 8, 12));
    let (mut p, mut m, mut v) = ([0.0; 12], [0.0; 11], [0.0; 12]);
    let spec = AdamwSpec { beta1: 0.9, beta2: 0.999, eps: 1e-8, decay: 0.0 };
    let to = Adapted { p: &mut p, m: &mut m, v: &mut v };
    assert_eq!(shape(run::adamw(&on, spec, (0.1, 1.0, 1), 1.0, &x, to)), ("m", 12, 11));
}

#[test]
fn numbers_that_no_kernel_takes_are_argument_errors() {
    let (on, x) = (Executor::Cpu, [1.0; 12]);
    let refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Argument { .. })), "{result:?}");
    refused(run::softcap_backward(&on, &x, &x, f32::NAN).map(drop));
    refused(run::add_weighted_backward(&on, &[], &[], &x, 4, 0.0).map(drop));
    refused(run::rope_backward(&on, &x, &[0], 1, &RopeTable::new(3, 1e4)).map(drop));
    refused(run::route_backward(&on, &x, 4, &[4; 6], &x[..6], 2, true).map(drop));
    refused(run::route_backward(&on, &x, 4, &[], &[], 0, true).map(drop));
    refused(run::matmul_experts_input(&on, &x, Matrix::f32(&x, 4, 3), 3, &[0; 6], 2).map(drop));
    refused(run::matmul_experts_input(&on, &x, Matrix::f32(&x, 4, 3), 2, &[2; 6], 2).map(drop));
    refused(run::combine_experts_backward(&on, &x, &[], &x, 0, 4).map(drop));
    refused(run::embed_backward(&on, &x, &[3, 0, 0], 3, 4).map(drop));
    refused(run::gather_rows_backward(&on, &x, &[1, 0, 2], 3, 4).map(drop));
    refused(run::gather_rows_backward(&on, &x, &[0, 1, 3], 3, 4).map(drop));
    refused(run::dropout(&on, &x, [0, 0], 0, 1.0).map(drop));
    refused(run::column_sum(&on, &x, None, 0).map(drop));
    refused(run::attention_backward(&on, [&x, &x, &x, &x], Heads { kv_heads: 3, ..heads(Mask::Causal) }).map(drop));
}

#[test]
fn nothing_in_gives_nothing_or_zeros() {
    for on in [Executor::Cpu, Executor::from(&device())] {
        assert_eq!(run::silu_backward(&on, &[], &[]).expect("no elements"), []);
        assert_eq!(run::swiglu_backward(&on, &[], &[], &[]).expect("no elements"), [vec![], vec![]]);
        assert_eq!(run::softmax_backward(&on, &[], &[], 3).expect("no rows"), []);
        assert_eq!(run::matmul_weight(&on, &[], &[], 1, 2).expect("no rows"), [0.0; 2]);
        assert_eq!(run::column_sum(&on, &[], None, 3).expect("no rows"), [0.0; 3]);
        assert_eq!(run::gather_rows_backward(&on, &[], &[], 2, 2).expect("no rows"), [0.0; 4]);
        assert_eq!(run::sum_squares(&on, &[]).expect("no elements"), 0.0);
        assert_eq!(run::cross_entropy(&on, &[], &[], 5).expect("no rows"), [[0.0; 2]; 0]);
    }
}
