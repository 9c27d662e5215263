//! llama.cpp's form of an adapter: a GGUF file.

use super::features::feature;
use super::names::{is_linear, layer};
use super::{AdapterError, Contents, EMBEDDING, Factor, OUTPUT, Side};
use crate::left_out::LeftOut;
use gguf::{Gguf, TensorInfo};
use kernels::TensorBytes;
use std::sync::Arc;

/// The prefixes of tensors of towers and projectors.
const TOWERS: [&str; 3] = ["v.", "a.", "mm."];

/// Reads the factors of a file, and returns them with the file's architecture.
pub(super) fn read(file: Gguf) -> Result<(String, Contents), AdapterError> {
    for (key, expected) in [("general.type", "adapter"), ("adapter.type", "lora")] {
        let found = file.get_opt::<&str>(key)?.unwrap_or("none");
        if found != expected {
            return Err(AdapterError::Kind { key, expected, found: found.chars().take(40).collect() });
        }
    }
    let activation = "adapter.alora.invocation_tokens";
    if let Some((_, value)) = file.metadata().find(|(key, _)| *key == activation) {
        return Err(feature(activation, value.describe()));
    }
    let alpha: f32 = file.get("adapter.lora.alpha")?;
    if !alpha.is_finite() {
        return Err(AdapterError::Scale { found: alpha });
    }
    let architecture = file.architecture()?.to_string();
    let file = Arc::new(file);
    let (mut factors, mut left_out) = (vec![], LeftOut::default());
    for (n, tensor) in file.tensors().iter().enumerate() {
        match weight_of(tensor.name()) {
            Some(weight) if is_tower(weight) => left_out.towers.push(weight.to_string()),
            Some(weight) if takes_none(weight) => left_out.other_layers.push(weight.to_string()),
            _ => factors.push(factor(tensor, TensorBytes::File(Arc::clone(&file), n), alpha)?),
        }
    }
    Ok((architecture, Contents::new(factors, left_out)?))
}

/// The weight whose factor has this name.
fn weight_of(name: &str) -> Option<&str> {
    name.strip_suffix(".lora_a").or_else(|| name.strip_suffix(".lora_b"))
}

fn is_tower(weight: &str) -> bool {
    TOWERS.iter().any(|prefix| weight.starts_with(prefix))
}

/// Whether a weight is of experts or a router, or a projection of the streams of Gemma 3n.
fn takes_none(weight: &str) -> bool {
    let of_block = |weight: &str| {
        let (number, rest) = weight.strip_prefix("blk.")?.split_once('.')?;
        let name = rest.strip_prefix("ffn_")?.strip_suffix(".weight")?;
        Some(
            layer(number).is_some()
                && (name.ends_with("_exps") || name.ends_with("_shexp") || name.starts_with("gate_inp")),
        )
    };
    ["altup_proj.weight", "altup_unembd_proj.weight"].contains(&weight) || of_block(weight).unwrap_or(false)
}

fn factor(tensor: &TensorInfo, bytes: TensorBytes, alpha: f32) -> Result<Factor, AdapterError> {
    let name = tensor.name().to_string();
    let Some((target, side)) = parse(&name) else { return Err(AdapterError::Target { name }) };
    let [cols, rows, 1, 1] = tensor.dims else {
        return Err(AdapterError::Dimensions { name, found: tensor.shape().iter().rev().copied().collect() });
    };
    let factor = Factor::new(name, target, side, tensor.ty()?, [rows, cols], bytes)?;
    // An alpha of none means that the factors are scaled already.
    let scale = if alpha == 0.0 { 1.0 } else { alpha / factor.rank() as f32 };
    Ok(Factor { scale, ..factor })
}

/// From `blk.3.attn_q.weight.lora_a`: the target `blk.3.attn_q.weight`, and the side.
fn parse(name: &str) -> Option<(String, Side)> {
    let (target, side) = match (name.strip_suffix(".lora_a"), name.strip_suffix(".lora_b")) {
        (Some(target), _) => (target, Side::A),
        (_, Some(target)) => (target, Side::B),
        _ => return None,
    };
    match target {
        OUTPUT => return Some((OUTPUT.to_string(), side)),
        // llama.cpp looks rows up in its factor A, so it is our factor B.
        EMBEDDING => return Some((EMBEDDING.to_string(), if side == Side::A { Side::B } else { Side::A })),
        _ => {}
    }
    is_linear(target).then(|| (target.to_string(), side))
}
