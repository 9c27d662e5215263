//! The two ends that all architectures share: token ids to embeddings, and hidden states to logits.

use super::Logits;
use kernels::ops::{embed, gather_rows, matmul, rms_norm, scale, softcap};
use kernels::{Recorder, Tensor, Weight};

/// Weights and constants behind a model's last layer.
#[derive(Copy, Clone, Debug)]
pub struct Head {
    /// \[D\].
    pub output_norm: Weight,
    pub layer_norm_rms_epsilon: f32,
    /// [V, D]. This is the embedding table where the file has no output matrix of its own.
    pub output: Weight,
    /// The limit that soft-capped logits approach; `None` for no cap.
    pub final_logit_softcapping: Option<f32>,
}

/// [T, D]: the embeddings of the step's token ids, which are rows of `table` [V, D]. Each is
/// multiplied by `factor`, which is the square root of D in Gemma.
pub fn embed_tokens(rec: &mut Recorder, table: Weight, factor: Option<f32>) -> Tensor {
    let tokens = rec.state(0);
    let h = embed(rec, table, tokens);
    let h = factor.map_or(h, |factor| scale(rec, h, factor));
    rec.tap("embed", 0, h);
    h
}

/// The rows of `h` [T, D] that get logits: [R, D].
pub fn rows_for(rec: &mut Recorder, h: Tensor, rows: Logits) -> Tensor {
    match rows {
        Logits::Rows => gather_rows(rec, h),
        Logits::All => h,
    }
}

/// [R, V]: the logits of the requested rows of `h` [T, D], the hidden states behind the last layer.
pub fn logits(rec: &mut Recorder, head: &Head, h: Tensor, rows: Logits) -> Tensor {
    let h = rows_for(rec, h, rows);
    let h = rms_norm(rec, h, Some(head.output_norm), head.layer_norm_rms_epsilon);
    rec.tap("output_norm", 0, h);
    let y = matmul(rec, head.output, h);
    head.final_logit_softcapping.map_or(y, |cap| softcap(rec, y, cap))
}
