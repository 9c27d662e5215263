//! Tiny adapters with random factors, in both file forms, and merging them by hand.
#![allow(dead_code)]

use crate::common::{Spec, Tiny};
use gguf::{GgmlType, GgufBuilder};
use kernels::testing::kernel::random::Gen;
use model::AdapterFile;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::collections::HashMap;

/// The linear layers: our names and PEFT's.
pub const LINEARS: [(&str, &str); 7] = [
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// The factors for one tensor: `b` [rows, rank] times `a` [rank, cols].
#[derive(Clone, Debug)]
pub struct Over {
    pub layer: u32,
    pub linear: (&'static str, &'static str),
    pub rank: usize,
    pub a: Vec<f32>,
    pub b: Vec<f32>,
}

#[derive(Clone, Debug)]
pub struct Lora {
    pub alpha: f32,
    pub rank: usize,
    pub over: Vec<Over>,
}

impl Tiny {
    /// The same with the model's weights in F32.
    pub fn f32(self) -> Self {
        Self { types: &[GgmlType::F32], ..self }
    }

    /// [rows, columns] of a linear layer.
    fn shape(&self, ours: &str) -> (usize, usize) {
        let (d, f) = (self.embedding, self.feed_forward);
        let (q, kv) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let (rows, cols) = match ours {
            "attn_q" => (q, d),
            "attn_k" | "attn_v" => (kv, d),
            "attn_output" => (d, q),
            "ffn_down" => (d, f),
            _ => (f, d),
        };
        (rows as usize, cols as usize)
    }
}

impl Lora {
    /// An adapter for these linear layers of every block. Its size moves logits by about 1.
    pub fn random(tiny: &Tiny, rank: usize, seed: u64, linears: &[&str]) -> Self {
        let mut g = Gen::new(seed);
        let mut over = vec![];
        for (layer, linear) in (0..tiny.layers).flat_map(|l| LINEARS.map(|linear| (l, linear))) {
            let (rows, cols) = tiny.shape(linear.0);
            if linears.contains(&linear.0) {
                let (a, b) = ((1.0 / cols as f32).sqrt(), (0.2 / rank as f32).sqrt());
                let a = (0..rank * cols).map(|_| a * g.unit()).collect();
                let b = (0..rows * rank).map(|_| b * g.unit()).collect();
                over.push(Over { layer, linear, rank, a, b });
            }
        }
        Self { alpha: 2.0 * rank as f32, rank, over }
    }

    /// An adapter for all seven linear layers.
    pub fn whole(tiny: &Tiny, rank: usize, seed: u64) -> Self {
        Self::random(tiny, rank, seed, &LINEARS.map(|(ours, _)| ours))
    }

    /// `adapter_config.json` with the entries `more` added.
    pub fn config(&self, more: &str) -> String {
        format!(r#"{{"peft_type": "LORA", "r": {}, "lora_alpha": {}, "bias": "none"{more}}}"#, self.rank, self.alpha)
    }

    /// PEFT's tensors by name: type, shape, bytes.
    pub fn tensors(&self, ty: GgmlType) -> HashMap<String, (Dtype, Vec<usize>, Vec<u8>)> {
        let dtype = match ty {
            GgmlType::F32 => Dtype::F32,
            GgmlType::F16 => Dtype::F16,
            _ => Dtype::BF16,
        };
        let mut all = HashMap::new();
        for Over { layer, linear: (_, theirs), rank, a, b } in &self.over {
            let mut add = |side: &str, values: &[f32], rows: usize| {
                let name = format!("base_model.model.model.layers.{layer}.{theirs}.lora_{side}.weight");
                let bytes = gguf::quantize(ty, values, values.len() / rows).expect("a float type");
                all.insert(name, (dtype, vec![rows, values.len() / rows], bytes));
            };
            add("A", a, *rank);
            add("B", b, b.len() / rank);
        }
        all
    }

    /// PEFT's form.
    pub fn peft(&self, ty: GgmlType, more: &str) -> AdapterFile {
        AdapterFile::from_peft(&self.config(more), Box::new(safetensors(&self.tensors(ty)))).expect("a good adapter")
    }

    /// llama.cpp's form, as a builder for further changes.
    pub fn builder(&self, architecture: &str, ty: GgmlType) -> GgufBuilder<'static> {
        let file = GgufBuilder::new()
            .set("general.type", "adapter")
            .set("adapter.type", "lora")
            .set("general.architecture", architecture)
            .set("adapter.lora.alpha", self.alpha);
        self.over.iter().fold(file, |file, Over { layer, linear: (ours, _), rank, a, b }| {
            let tensor = |file: GgufBuilder<'static>, side: &str, values: &[f32], rows: usize| {
                let cols = values.len() / rows;
                // F32 is used where a row does not fill blocks of the type.
                let ty = if cols.is_multiple_of(ty.block_size()) { ty } else { GgmlType::F32 };
                let bytes = gguf::quantize(ty, values, cols).expect("whole blocks");
                file.tensor(format!("blk.{layer}.{ours}.weight.lora_{side}"), &[cols as u64, rows as u64], ty, bytes)
            };
            let file = tensor(file, "a", a, *rank);
            tensor(file, "b", b, b.len() / rank)
        })
    }

    /// llama.cpp's form.
    pub fn gguf(&self, architecture: &str, ty: GgmlType) -> AdapterFile {
        let bytes = self.builder(architecture, ty).to_bytes().expect("writes");
        AdapterFile::from_gguf(gguf::Gguf::from_bytes(bytes).expect("opens")).expect("a good adapter")
    }

    /// Adds the product of the factors to a tensor, times the layer's `scale`.
    pub fn merge(&self, name: &str, spec: &mut Spec, scale: impl Fn(&Over) -> f32) {
        for over in self.over.iter().filter(|over| name == format!("blk.{}.{}.weight", over.layer, over.linear.0)) {
            let Over { rank, a, b, .. } = over;
            let (cols, s) = (a.len() / rank, f64::from(scale(over)));
            for (i, value) in spec.values.iter_mut().enumerate() {
                let (n, k) = (i / cols, i % cols);
                let sum: f64 = (0..*rank).map(|r| f64::from(b[n * rank + r]) * f64::from(a[r * cols + k])).sum();
                *value = (f64::from(*value) + s * sum) as f32;
            }
        }
    }
}

/// A safetensors file.
pub fn safetensors(tensors: &HashMap<String, (Dtype, Vec<usize>, Vec<u8>)>) -> Vec<u8> {
    let views = tensors.iter().map(|(name, (ty, shape, bytes))| (name, TensorView::new(*ty, shape.clone(), bytes).expect("a tensor")));
    safetensors::serialize(views, None).expect("writes")
}
