//! Single operations on slices: results equal the oracles' on this adapter, and slices that do not
//! fit are errors.

use cpu_ref::Mask;
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

fn values(seed: u64, n: usize) -> Vec<f32> {
    let mut g = Gen::new(seed);
    (0..n).map(|_| 3.0 * g.unit()).collect()
}

/// Compares the kernel's result with the oracle's.
fn equal(what: &str, got: &[f32], oracle: impl FnOnce(&mut [f32])) {
    let mut expected = vec![f32::NAN; got.len()];
    oracle(&mut expected);
    let nmse = cpu_ref::nmse(&expected, got);
    assert!(nmse <= BOUND, "{what}: {nmse}");
}

#[test]
fn rows_are_those_of_the_oracle() {
    let (device, dim) = (device(), 257);
    let (x, w) = (values(1, 3 * dim), values(2, dim));
    let y = run::rms_norm(&device, &x, Some(&w), dim, 1e-6).expect("fits");
    equal("rms_norm", &y, |y| cpu_ref::rms_norm(&x, Some(&w), dim, f64::from(1e-6_f32), y));
    let y = run::layer_norm(&device, &x, Some(&w), Some(&w), dim, 1e-6).expect("fits");
    equal("layer_norm", &y, |y| cpu_ref::layer_norm(&x, Some(&w), Some(&w), dim, f64::from(1e-6_f32), y));
    let y = run::rms_norm(&device, &x, None, dim, 1e-6).expect("fits");
    equal("rms_norm without weight", &y, |y| cpu_ref::rms_norm(&x, None, dim, f64::from(1e-6_f32), y));
    equal("softmax", &run::softmax(&device, &x, dim).expect("fits"), |y| cpu_ref::softmax(&x, dim, y));
    equal("log_softmax", &run::log_softmax(&device, &x, dim).expect("fits"), |y| cpu_ref::log_softmax(&x, dim, y));
    let largest = run::argmax(&device, &x, dim).expect("fits");
    assert_eq!(largest, x.chunks(dim).map(cpu_ref::argmax).collect::<Vec<_>>());
    let best = run::top_k(&device, &x, dim, 7).expect("fits");
    assert_eq!(best, x.chunks(dim).map(|row| cpu_ref::top_k(row, 7)).collect::<Vec<_>>());
}

#[test]
fn elements_are_those_of_the_oracle() {
    let (device, n) = (device(), 1021);
    let (a, b) = (values(3, n), values(4, n));
    equal("add", &run::add(&device, &a, &b).expect("fits"), |y| cpu_ref::add(&a, &b, y));
    equal("mul", &run::mul(&device, &a, &b).expect("fits"), |y| cpu_ref::mul(&a, &b, y));
    equal("scale", &run::scale(&device, &a, 1.5).expect("fits"), |y| cpu_ref::scale(&a, 1.5, y));
    equal("softcap", &run::softcap(&device, &a, 2.0).expect("fits"), |y| cpu_ref::softcap(&a, 2.0, y));
    equal("relu", &run::relu(&device, &a).expect("fits"), |y| cpu_ref::relu(&a, y));
    equal("silu", &run::silu(&device, &a).expect("fits"), |y| cpu_ref::silu(&a, y));
    equal("gelu", &run::gelu(&device, &a).expect("fits"), |y| cpu_ref::gelu(&a, y));
    equal("swiglu", &run::swiglu(&device, &a, &b).expect("fits"), |y| cpu_ref::swiglu(&a, &b, y));
    equal("geglu", &run::geglu(&device, &a, &b).expect("fits"), |y| cpu_ref::geglu(&a, &b, y));
}

#[test]
fn rows_of_several_tensors_are_those_of_the_oracle() {
    let (device, dim, rows) = (device(), 257, 3);
    let (a, b, c) = (values(20, rows * dim), values(21, rows * dim), values(22, rows * 2));
    let y = run::match_rms(&device, &a, &b, dim, 1e-5).expect("fits");
    equal("match_rms", &y, |y| cpu_ref::match_rms(&a, &b, dim, 1e-5, y));
    let y = run::gaussian_top_k(&device, &a, dim, 0.5).expect("fits");
    equal("gaussian_top_k", &y, |y| cpu_ref::gaussian_top_k(&a, dim, 0.5, y));
    let y = run::add_weighted(&device, &a, &[&a, &b], &c, dim, 1.0).expect("fits");
    let weights = cpu_ref::RowWeights { c: &c, columns: 2, first: 0, shift: 1.0 };
    equal("add_weighted", &y, |y| cpu_ref::add_weighted(&a, &[&a, &b], weights, dim, y));
}

#[test]
fn a_shorter_term_repeats_along_the_rows() {
    let (device, a) = (device(), values(5, 12));
    let sum = run::add(&device, &a, &[1.0, 2.0, 3.0]).expect("fits");
    assert_eq!(sum[9..], [a[9] + 1.0, a[10] + 2.0, a[11] + 3.0]);
    let product = run::mul(&device, &a, &[2.0]).expect("fits");
    assert_eq!(product, a.iter().map(|x| x * 2.0).collect::<Vec<_>>());
}

#[test]
fn quantized_matrices_multiply_and_embed() {
    let (device, rows, cols) = (device(), 9, 512);
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q4_K, GgmlType::Q8_0] {
        let bytes = Gen::new(6).weight(ty, rows as u32, cols as u32);
        let (matrix, oracle) = (Matrix { ty, rows, cols, bytes: &bytes }, cpu_ref::Rows::new(ty, cols, &bytes));
        for tokens in [1, 5] {
            let x = values(7, tokens * cols);
            let y = run::matmul(&device, &x, matrix).expect("fits");
            equal("matmul", &y, |y| cpu_ref::matmul(&oracle, &x, y));
        }
        let ids = [8, 0, 3, 8];
        equal("embed", &run::embed(&device, matrix, &ids).expect("fits"), |y| cpu_ref::embed(&oracle, &ids, y));
    }
}

#[test]
fn heads_rotate_by_their_positions() {
    let (device, heads, head_dim, positions) = (device(), 3, 64, [0, 7, 100_000]);
    let x = values(8, positions.len() * heads * head_dim);
    let table = RopeTable::new(32, 1e6);
    let mut rows = vec![0.0; positions.len() * 32];
    cpu_ref::rope_rows(
        &cpu_ref::RopeSpec { dim: 32, base: 1e6, scale: 1.0, factors: None, magnitude: 1.0 },
        &positions,
        &mut rows,
    );
    let y = run::rope(&device, &x, &positions, heads, &table).expect("fits");
    equal("rope", &y, |y| cpu_ref::rope(&x, &rows, heads, head_dim, y));
}

fn heads(mask: Mask) -> Heads {
    Heads { heads: 4, kv_heads: 2, dim: 64, attend: Attend { mask, scale: 0.125, softcap: None } }
}

#[test]
fn the_last_queries_attend_over_all_keys() {
    let (device, s, t, width) = (device(), 21, 5, 2 * 64);
    let (q, k, v) = (values(9, t * 2 * width), values(10, s * width), values(11, s * width));
    let spec = cpu_ref::AttentionSpec { heads: 4, kv_heads: 2, head_dim: 64, scale: 0.125, softcap: None };
    for mask in [Mask::Causal, Mask::Window(6), Mask::Bidirectional] {
        let y = run::attention(&device, &q, &k, &v, heads(mask)).expect("fits");
        equal("attention", &y, |y| {
            for (n, (q, y)) in q.chunks(2 * width).zip(y.chunks_mut(2 * width)).enumerate() {
                cpu_ref::attention(&spec, q, &k, &v, mask.visible(s - t + n, s), y);
            }
        });
    }
}

#[test]
fn the_oracles_run_behind_the_same_call() {
    let x = values(12, 300);
    let (gpu, cpu) =
        (run::softmax(&device(), &x, 100).expect("fits"), run::softmax(Executor::Cpu, &x, 100).expect("fits"));
    assert!(cpu_ref::nmse(&cpu, &gpu) <= BOUND);
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
    assert_eq!(shape(run::rms_norm(&on, &x, None, 5, 1e-6)), ("x", 10, 12));
    assert_eq!(shape(run::layer_norm(&on, &x, None, Some(&x[..3]), 4, 1e-6)), ("b", 4, 3));
    assert_eq!(shape(run::rms_norm(&on, &x, Some(&x[..3]), 4, 1e-6)), ("w", 4, 3));
    assert_eq!(shape(run::softmax(&on, &x, 0)), ("x", 0, 12));
    assert_eq!(shape(run::add(&on, &x, &x[..5])), ("a", 10, 12));
    assert_eq!(shape(run::mul(&on, &x, &[])), ("a", 0, 12));
    assert_eq!(shape(run::swiglu(&on, &x, &x[..11])), ("up", 12, 11));
    assert_eq!(shape(run::matmul(&on, &x, Matrix::f32(&x, 2, 5))), ("x", 10, 12));
    assert_eq!(shape(run::matmul(&on, &x, Matrix::f32(&x, 2, 4))), ("w", 32, 48));
    let wide = [0.0; 256];
    assert_eq!(shape(run::attention(&on, &wide, &wide[..128], &wide[..127], heads(Mask::Causal))), ("v", 128, 127));
    let table = RopeTable::new(2, 1e4);
    assert_eq!(shape(run::rope(&on, &x, &[0, 1, 2, 3, 4], 1, &table)), ("x", 10, 12));
}

#[test]
fn sizes_that_no_kernel_takes_are_argument_errors() {
    let (on, x) = (Executor::Cpu, [1.0; 12]);
    let refused = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Argument { .. })), "{result:?}");
    refused(run::softcap(&on, &x, 0.0).map(drop));
    refused(run::softcap(&on, &x, f32::NAN).map(drop));
    refused(run::top_k(&on, &x, 4, 0).map(drop));
    refused(run::top_k(&on, &x, 4, 257).map(drop));
    refused(run::embed(&on, Matrix::f32(&x, 3, 4), &[0, 3]).map(drop));
    refused(run::matmul(&on, &x, Matrix::f32(&[], 0, 4)).map(drop));
    refused(run::add_weighted(&on, &x, &[], &[], 4, 0.0).map(drop));
    refused(run::add_weighted(&on, &x, &[&x[..]; 5], &x, 4, 0.0).map(drop));
    refused(run::matmul(&on, &x, Matrix { ty: GgmlType::Q8_0, rows: 1, cols: 12, bytes: &[] }).map(drop));
    let table = |dim, factors| RopeTable { factors, ..RopeTable::new(dim, 1e4) };
    refused(run::rope(&on, &x, &[0], 1, &table(3, None)).map(drop));
    refused(run::rope(&on, &x, &[0], 1, &table(14, None)).map(drop));
    refused(run::rope(&on, &x, &[0], 5, &table(2, None)).map(drop));
    refused(run::rope(&on, &x, &[0], 1, &table(4, Some([1.0].as_slice().into()))).map(drop));
    let with = |change: fn(&mut Heads)| {
        let mut of = heads(Mask::Causal);
        change(&mut of);
        run::attention(&on, &[0.0; 512], &[0.0; 128], &[0.0; 128], of).map(drop)
    };
    refused(with(|of| of.kv_heads = 3));
    refused(with(|of| of.kv_heads = 0));
    refused(with(|of| of.dim = 66));
    refused(with(|of| of.dim = 516));
    refused(with(|_| {}));
}

#[test]
fn nothing_in_gives_nothing_out() {
    for on in [Executor::Cpu, Executor::from(&device())] {
        assert_eq!(run::rms_norm(&on, &[], None, 8, 1e-6).expect("no rows"), []);
        assert_eq!(run::silu(&on, &[]).expect("no elements"), []);
        assert_eq!(run::add(&on, &[], &[]).expect("no elements"), []);
        assert_eq!(run::argmax(&on, &[], 3).expect("no rows"), []);
        assert_eq!(run::embed(&on, Matrix::f32(&[1.0], 1, 1), &[]).expect("no ids"), []);
    }
}

#[test]
fn a_type_without_kernels_is_named() {
    let matrix = Matrix { ty: GgmlType::F64, rows: 1, cols: 1, bytes: &[0; 8] };
    assert!(matches!(run::matmul(&device(), &[1.0], matrix), Err(Error::Format { ty: "F64", .. })));
}

#[test]
fn experts_are_those_of_the_oracle_in_few_rows_and_in_many() {
    let (device, experts, dim, each) = (device(), 5_usize, 36_usize, 20_usize);
    let w = values(21, experts * each * dim);
    for rows in [1_usize, 70] {
        let logits = values(22, rows * experts);
        let chosen = run::route(&device, &logits, experts, 3, true).expect("fits");
        let (mut ids, mut weights) = (vec![0; rows * 3], vec![0.0; rows * 3]);
        let spec = cpu_ref::RouteSpec { experts, chosen: 3, normalize: true, scale: None };
        cpu_ref::route(&spec, &logits, &mut ids, &mut weights);
        assert_eq!(chosen.iter().flatten().map(|c| c.0).collect::<Vec<_>>(), ids);
        let got: Vec<f32> = chosen.iter().flatten().map(|c| c.1).collect();
        equal("route", &got, |y| y.copy_from_slice(&weights));
        let x = values(23, rows * dim);
        let y = run::matmul_experts(&device, &x, Matrix::f32(&w, experts * each, dim), 5, &ids).expect("fits");
        let matrix = cpu_ref::Rows::new(GgmlType::F32, dim, bytemuck::cast_slice(&w));
        equal("matmul_experts", &y, |y| cpu_ref::matmul_experts(&matrix, each, 0..each, &ids, &x, y));
    }
}

#[test]
fn experts_that_do_not_fit_are_refused() {
    let (w, x) = (values(24, 8), values(25, 4));
    let product =
        |experts, choices: &[u32]| run::matmul_experts(&Executor::Cpu, &x, Matrix::f32(&w, 2, 4), experts, choices);
    assert!(product(2, &[1]).is_ok());
    for (experts, choices) in [(0, &[0][..]), (3, &[0]), (2, &[2]), (2, &[]), (1025, &[0])] {
        assert!(
            matches!(product(experts, choices), Err(Error::Argument { .. })),
            "{experts} experts, choices {choices:?}"
        );
    }
    for (experts, k) in [(4, 0), (4, 5), (1025, 1)] {
        assert!(
            matches!(run::route(&Executor::Cpu, &x, experts, k, true), Err(Error::Argument { .. })),
            "{k} of {experts}"
        );
    }
}
