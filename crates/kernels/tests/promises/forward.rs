//! Forward operations.

use crate::{device, numbers, oracle, within};
use cpu_ref::Mask;
use gguf::GgmlType;
use kernels::ops::Attend;
use kernels::run::{self, Heads, Matrix};
use kernels::testing::kernel::random::Gen;
use kernels::{Error, Executor, TensorBytes, Weights};

/// y = W x by the oracle.
fn product(w: Matrix<'_>, x: &[f32]) -> Vec<f32> {
    let len = x.len() / w.cols * w.rows;
    oracle(len, |y| cpu_ref::matmul(&cpu_ref::Rows::new(w.ty, w.cols, w.bytes), x, y))
}

#[test]
fn rms_norm_of_rows_of_1_to_8960() {
    for (dim, eps) in [1, 2, 31, 255, 256, 257, 896, 1536, 2048, 3584, 5120, 8960]
        .into_iter()
        .flat_map(|dim| [(dim, 1e-6), (dim, 1e-5)])
    {
        let (x, w) = (numbers(3 * dim, 1, 3.0), numbers(dim, 2, 1.0));
        for w in [Some(&w[..]), None] {
            let y = run::rms_norm(&device(), &x, w, dim, eps).expect("fits");
            let expected = oracle(3 * dim, |y| cpu_ref::rms_norm(&x, w, dim, f64::from(eps), y));
            within(&format!("{dim}"), f64::from(2.0_f32.powi(-21)), &y, &expected);
        }
    }
}

#[test]
fn a_row_of_a_product_is_the_same_alone_and_among_others() {
    let (on, n, k) = (device(), 70, 512);
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q8_0, GgmlType::Q4_K, GgmlType::Q6_K] {
        let bytes = Gen::new(3).weight(ty, n as u32, k as u32);
        let w = Matrix { ty, rows: n, cols: k, bytes: &bytes };
        let x = numbers(65 * k, 1, 0.1);
        let expected = product(w, &x);
        let alone: Vec<f32> = x.chunks(k).flat_map(|x| run::matmul(&on, x, w).expect("fits")).collect();
        within(&format!("{ty}, rows alone"), 1e-5, &alone, &expected);
        for rows in [2, 3, 4, 65] {
            let y = run::matmul(&on, &x[..rows * k], w).expect("fits");
            within(&format!("{ty}, {rows} rows"), 1e-5, &y, &alone[..rows * n]);
        }
    }
}

#[test]
fn rows_of_1_to_9_elements_give_the_right_product() {
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::BF16] {
        for (k, rows) in (1..10).flat_map(|k| [(k, 1), (k, 3), (k, 17)]) {
            let bytes = Gen::new(9).weight(ty, 5, k as u32);
            let w = Matrix { ty, rows: 5, cols: k, bytes: &bytes };
            let x = numbers(rows * k, 1, 1.0);
            within(
                &format!("{ty}, {rows} rows of {k}"),
                1e-6,
                &run::matmul(&device(), &x, w).expect("fits"),
                &product(w, &x),
            );
        }
    }
}

#[test]
fn a_q4_k_matrix_of_more_rows_than_a_grid_has() {
    let (on, ty, n, k) = (device(), GgmlType::Q4_K, 4 * 65_535 + 5, 256);
    let bytes = Gen::new(1).weight(ty, n as u32, k as u32);
    let w = Matrix { ty, rows: n, cols: k, bytes: &bytes };
    let x = numbers(k, 1, 0.1);
    within("Q4_K by a row", 1e-4, &run::matmul(&on, &x, w).expect("fits"), &product(w, &x));
    // 144 bytes for 256 values, as they lie on the device too.
    let mut weights = Weights::new(&Executor::from(&on));
    weights.matrix("w", ty, n as u32, k as u32, &TensorBytes::Owned(bytes.as_slice().into())).expect("a weight");
    let loaded = weights.load().expect("room for the weight").bytes();
    assert!((4 * n * k) as f64 / loaded as f64 > 7.1, "{loaded} bytes on the device");
    // What does not fit is refused, not computed.
    let with = |cols, bytes| run::matmul(&on, &x[..cols], Matrix { ty, rows: n, cols, bytes });
    assert!(matches!(with(k, &bytes[1..]), Err(Error::Bytes { .. })));
    assert!(matches!(with(255, &bytes[..]), Err(Error::Argument { .. })));
    let unread = Matrix { ty: GgmlType::F64, rows: 1, cols: 1, bytes: &[0; 8] };
    assert!(matches!(run::matmul(&on, &x[..1], unread), Err(Error::Format { .. })));
}

fn heads(heads: usize, kv_heads: usize, dim: usize) -> Heads {
    Heads {
        heads,
        kv_heads,
        dim,
        attend: Attend { mask: Mask::Causal, scale: 1.0 / (dim as f32).sqrt(), softcap: None },
    }
}

#[test]
fn causal_attention_of_any_head_and_length() {
    let on = device();
    let (long, all) = ([(64, 2049)], [64, 68, 80, 96, 124, 128, 132, 256].map(|dim| (dim, 33)));
    for (dim, rows) in all.into_iter().chain(long) {
        let of = heads(2, 1, dim);
        let what = format!("{rows} rows of {dim}");
        let (q, k, v) = (numbers(rows * 2 * dim, 1, 2.0), numbers(rows * dim, 2, 2.0), numbers(rows * dim, 3, 1.0));
        let y = run::attention(&on, &q, &k, &v, of).expect("fits");
        within(&what, 1e-5, &y, &run::attention(Executor::Cpu, &q, &k, &v, of).expect("fits"));
        // The probabilities of a row sum to 1.
        let ones = run::attention(&on, &q, &k, &vec![1.0; v.len()], of).expect("fits");
        within(&format!("{what}, values of 1"), 1e-6, &ones, &vec![1.0; q.len()]);
        // Keys and values behind a row change no bit of it.
        let kept = rows / 2;
        let changed = |x: &[f32]| {
            x[..kept * dim].iter().copied().chain(x[kept * dim..].iter().map(|x| 3.0 - x)).collect::<Vec<_>>()
        };
        let other = run::attention(&on, &q, &changed(&k), &changed(&v), of).expect("fits");
        let bits = |y: &[f32]| y[..kept * 2 * dim].iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert!(bits(&other) == bits(&y) && other != y, "{what}");
    }
}
