//! Tiny adapters with random factors, in both file forms, and merging them by hand.
#![allow(dead_code)]

use crate::common::{Spec, Tiny};
use gguf::{GgmlType, GgufBuilder};
use kernels::testing::kernel::random::Gen;
use model::AdapterFile;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::collections::HashMap;

/// The linear layers of blocks, and the one before the blocks: our names and PEFT's.
pub const LINEARS: [(&str, &str); 10] = [
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
    ("inp_gate", "per_layer_input_gate"),
    ("proj", "per_layer_projection"),
    BEFORE_BLOCKS,
];

const BEFORE_BLOCKS: (&str, &str) = ("per_layer_model_proj", "per_layer_model_projection");

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
}

impl Over {
    /// The name of the weight in our files.
    pub fn target(&self) -> String {
        target(self.layer, self.linear)
    }

    /// The name of the module within the text model.
    fn module(&self) -> String {
        if self.linear == BEFORE_BLOCKS {
            BEFORE_BLOCKS.1.to_string()
        } else {
            format!("layers.{}.{}", self.layer, self.linear.1)
        }
    }
}

fn target(layer: u32, linear: (&str, &str)) -> String {
    if linear == BEFORE_BLOCKS { format!("{}.weight", linear.0) } else { format!("blk.{layer}.{}.weight", linear.0) }
}

impl Lora {
    /// An adapter for these linear layers of every block that has them. Its size moves logits by
    /// about 1.
    pub fn random(tiny: &Tiny, rank: usize, seed: u64, linears: &[&str]) -> Self {
        let mut g = Gen::new(seed);
        let mut over = vec![];
        for (layer, linear) in (0..tiny.layers).flat_map(|l| LINEARS.map(|linear| (l, linear))) {
            // The layer before the blocks counts to the first block.
            let is_there = linear != BEFORE_BLOCKS || layer == 0;
            let Some([rows, cols]) = tiny.shape(&target(layer, linear)).filter(|_| is_there) else { continue };
            if linears.contains(&linear.0) {
                let (a, b) = ((1.0 / cols as f32).sqrt(), (0.2 / rank as f32).sqrt());
                let a = (0..rank * cols).map(|_| a * g.unit()).collect();
                let b = (0..rows * rank).map(|_| b * g.unit()).collect();
                over.push(Over { layer, linear, rank, a, b });
            }
        }
        Self { alpha: 2.0 * rank as f32, rank, over }
    }

    /// An adapter for all linear layers.
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
        for over @ Over { rank, a, b, .. } in &self.over {
            let mut add = |side: &str, values: &[f32], rows: usize| {
                let name = format!("base_model.model.model.{}.lora_{side}.weight", over.module());
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
        self.over.iter().fold(file, |file, over| {
            let Over { rank, a, b, .. } = over;
            let tensor = |file: GgufBuilder<'static>, side: &str, values: &[f32], rows: usize| {
                let cols = values.len() / rows;
                // F32 is used where a row does not fill blocks of the type.
                let ty = if cols.is_multiple_of(ty.block_size()) { ty } else { GgmlType::F32 };
                let bytes = gguf::quantize(ty, values, cols).expect("whole blocks");
                file.tensor(format!("{}.lora_{side}", over.target()), &[cols as u64, rows as u64], ty, bytes)
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
        for over in self.over.iter().filter(|over| name == over.target()) {
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
    let views = tensors
        .iter()
        .map(|(name, (ty, shape, bytes))| (name, TensorView::new(*ty, shape.clone(), bytes).expect("a tensor")));
    safetensors::serialize(views, None).expect("writes")
}
