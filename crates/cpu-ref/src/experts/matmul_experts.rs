//! Products in which every slot uses the weights of its own expert.

use std::ops::Range;

use crate::{Rows, dot::dot};

/// `y[s, n] = sum_k w[experts[s] * stride + rows.start + n, k] * x[s / per, k]`.
///
/// `w [E * stride, K]` holds the matrices of all experts, one after another, `stride` rows each.
/// The product uses the rows `rows` of each matrix. `experts [S]`; `x [S / per, K]`, where `per`
/// consecutive slots read the same row; `y [S, N]` with N = `rows.len()`.
pub fn matmul_experts(w: &Rows, stride: usize, rows: Range<usize>, experts: &[u32], x: &[f32], y: &mut [f32]) {
    let (n, k) = (rows.len(), w.cols);
    assert!(
        rows.end <= stride && stride > 0 && w.len().is_multiple_of(stride),
        "matmul_experts: rows {rows:?} of {stride}"
    );
    crate::check::len("matmul_experts: y", y.len(), experts.len() * n);
    if y.is_empty() {
        return;
    }
    let inputs = crate::check::rows("matmul_experts: x", x.len(), k);
    assert!(
        inputs > 0 && experts.len().is_multiple_of(inputs),
        "matmul_experts: {} slots of {inputs} rows",
        experts.len()
    );
    let per = experts.len() / inputs;
    let mut row = vec![0.0f32; k];
    for expert in 0..w.len() / stride {
        let slots: Vec<usize> = (0..experts.len()).filter(|&s| experts[s] as usize == expert).collect();
        if slots.is_empty() {
            continue;
        }
        for i in 0..n {
            w.dequantize_row(expert * stride + rows.start + i, &mut row);
            for &s in &slots {
                y[s * n + i] = dot(&row, &x[s / per * k..][..k]) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use gguf::GgmlType;

    use super::*;
    use crate::rows::tests::f32_bytes;

    /// Three experts of two rows of two elements: row r is [r, 10 r].
    fn experts() -> Vec<u8> {
        f32_bytes(&(0..6).flat_map(|r| [r as f32, 10.0 * r as f32]).collect::<Vec<_>>())
    }

    #[test]
    fn two_choices_share_a_row() {
        let (w, mut y) = (experts(), [f32::NAN; 8]);
        matmul_experts(&Rows::new(GgmlType::F32, 2, &w), 2, 0..2, &[2, 0, 1, 2], &[1.0, 0.0, 0.0, 1.0], &mut y);
        assert_eq!(y, [4.0, 5.0, 0.0, 1.0, 20.0, 30.0, 40.0, 50.0]);
    }

    #[test]
    fn a_part_of_every_expert_with_a_row_per_slot() {
        let (w, mut y) = (experts(), [f32::NAN; 2]);
        matmul_experts(&Rows::new(GgmlType::F32, 2, &w), 2, 1..2, &[2, 0], &[1.0, 0.0, 0.0, 1.0], &mut y);
        assert_eq!(y, [5.0, 10.0]);
    }

    #[test]
    fn no_slots_write_nothing() {
        matmul_experts(&Rows::new(GgmlType::F32, 2, &experts()), 2, 0..2, &[], &[], &mut []);
    }

    #[test]
    #[should_panic(expected = "matmul_experts: rows 1..3 of 2")]
    fn rows_of_the_next_expert_are_refused() {
        matmul_experts(&Rows::new(GgmlType::F32, 2, &experts()), 2, 1..3, &[0], &[1.0, 0.0], &mut [0.0; 2]);
    }
}
