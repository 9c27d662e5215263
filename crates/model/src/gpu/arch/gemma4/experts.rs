//! The experts of Gemma 4: GEGLUs that a router chooses. They run beside the dense GEGLU, on the
//! same residual.
//! (Hugging Face `Gemma4TextRouter` and `Gemma4TextExperts`.)

use crate::error::Error;
use crate::load::Loader;
use crate::meta::{EXPERTS, LENGTHS, Meta};
use kernels::ops::{add, combine_experts, geglu, matmul_exact, matmul_experts, rms_norm, route, scale};
use kernels::{Recorder, Tensor, Weight};
use std::ops::Range;

pub(super) struct Config {
    expert_count: u32,
    expert_used_count: u32,
    expert_feed_forward_length: u32,
}

impl Config {
    /// `None` if the file states no experts.
    pub fn read(meta: &Meta<'_>) -> Result<Option<Self>, Error> {
        let expert_count = meta.count_or("expert_count", 0..=*EXPERTS.end(), 0)?;
        if expert_count == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            expert_count,
            expert_used_count: meta.count("expert_used_count", 1..=expert_count)?,
            expert_feed_forward_length: meta.count("expert_feed_forward_length", LENGTHS)?,
        }))
    }
}

/// Weights that a layer with experts has besides its dense network.
pub(super) struct Experts {
    ffn_gate_inp: Weight,
    ffn_gate_inp_scale: Weight,
    /// The weight, and the rows of each expert in it that belong to the gate.
    ffn_gate_exps: (Weight, Range<u32>),
    ffn_up_exps: (Weight, Range<u32>),
    ffn_down_exps: Weight,
    /// A factor on each expert's routing weight.
    ffn_down_exps_scale: Weight,
    post_ffw_norm_1: Weight,
    pre_ffw_norm_2: Weight,
    post_ffw_norm_2: Weight,
}

impl Experts {
    pub fn load(c: &Config, l: usize, d: u32, from: &mut Loader<'_>) -> Result<Self, Error> {
        let (e, f) = (c.expert_count, c.expert_feed_forward_length);
        let name = |tensor: &str| format!("blk.{l}.{tensor}");
        // Some files store gate and up in two tensors instead of one. Ollama's first files use
        // another name for the experts' factors.
        let (apart, together) = (name("ffn_gate_exps.weight"), name("ffn_gate_up_exps.weight"));
        let (ffn_gate_exps, ffn_up_exps) = if from.has(&apart) && !from.has(&together) {
            ((from.experts(&apart, e, f, d)?, 0..f), (from.experts(&name("ffn_up_exps.weight"), e, f, d)?, 0..f))
        } else {
            let both = from.experts(&together, e, 2 * f, d)?;
            ((both, 0..f), (both, f..2 * f))
        };
        let older = name("ffn_gate_inp.per_expert_scale");
        let factors = if from.has(&older) { older } else { name("ffn_down_exps.scale") };
        Ok(Self {
            ffn_gate_inp: from.matrix(&name("ffn_gate_inp.weight"), e, d)?,
            ffn_gate_inp_scale: from.vector(&name("ffn_gate_inp.scale"), d)?,
            ffn_gate_exps,
            ffn_up_exps,
            ffn_down_exps: from.experts(&name("ffn_down_exps.weight"), e, d, f)?,
            ffn_down_exps_scale: from.vector(&factors, e)?,
            post_ffw_norm_1: from.vector(&name("post_ffw_norm_1.weight"), d)?,
            pre_ffw_norm_2: from.vector(&name("pre_ffw_norm_2.weight"), d)?,
            post_ffw_norm_2: from.vector(&name("post_ffw_norm_2.weight"), d)?,
        })
    }

    /// The normed `dense` output plus the normed weighted sum of the experts' outputs. The experts'
    /// input is the residual `h`. All tensors are [T, D].
    pub fn record(&self, rec: &mut Recorder, c: &Config, l: u32, eps: f32, h: Tensor, dense: Tensor) -> Tensor {
        let d = h.shape.width();
        let dense = rms_norm(rec, dense, Some(self.post_ffw_norm_1), eps);
        let s = rms_norm(rec, h, Some(self.ffn_gate_inp_scale), eps);
        let logits = matmul_exact(rec, self.ffn_gate_inp, s);
        let logits = scale(rec, logits, 1.0 / (d as f32).sqrt()); // [T, E]
        let routes = route(rec, logits, c.expert_used_count, true, Some(self.ffn_down_exps_scale));
        rec.tap("experts", l, routes.experts);
        let x = rms_norm(rec, h, Some(self.pre_ffw_norm_2), eps);
        let mut part = |(weight, rows): &(Weight, Range<u32>)| matmul_experts(rec, *weight, rows.clone(), x, &routes);
        let (gate, up) = (part(&self.ffn_gate_exps), part(&self.ffn_up_exps)); // [T, k, F]
        let y = geglu(rec, gate, up);
        let y = matmul_experts(rec, self.ffn_down_exps, 0..d, y, &routes); // [T, k, D]
        let y = combine_experts(rec, y, routes.weights);
        let y = rms_norm(rec, y, Some(self.post_ffw_norm_2), eps);
        add(rec, dense, y)
    }
}
