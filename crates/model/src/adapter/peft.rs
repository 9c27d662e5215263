//! PEFT's form of an adapter: `adapter_config.json` beside safetensors.

use super::config::Config;
use super::{AdapterError, Factor, LINEARS, Pair, Side, pair_up};
use crate::error::json_reason;
use gguf::{GgmlType, Source};
use kernels::TensorBytes;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use std::sync::Arc;

/// Prefixes of the text model's layers in a checkpoint. They depend on whether the checkpoint has
/// more than text, and on the library's version.
const PREFIXES: [&str; 5] = ["model.language_model.", "language_model.model.", "model.model.", "language_model.", "model."];

/// Upper limit of the header's bytes. A thousand layers need less.
const MAX_HEADER_BYTES: u64 = 8 << 20;

/// Reads the header and pairs the factors. Their data is read when they are loaded.
pub(super) fn read(config: &str, source: Box<dyn Source>) -> Result<Vec<Pair>, AdapterError> {
    let config = Config::read(config)?;
    let source: Arc<dyn Source> = source.into();
    let (data, header) = header(&*source)?;
    let mut factors = vec![];
    for name in header.offset_keys() {
        let Some(info) = header.info(&name) else { continue };
        let end = data.saturating_add(info.data_offsets.1 as u64);
        if end > source.len_bytes() {
            return Err(AdapterError::Truncated { name, end, bytes: source.len_bytes() });
        }
        let bytes = TensorBytes::At(Arc::clone(&source), data + info.data_offsets.0 as u64);
        factors.push(factor(name, info, bytes, &config)?);
    }
    pair_up(factors)
}

/// The offset of the data, and the parsed header.
fn header(source: &dyn Source) -> Result<(u64, Metadata), AdapterError> {
    let read = |offset, buf: &mut [u8]| source.read_at(offset, buf).map_err(|error| AdapterError::Read { what: "the tensors", error });
    let broken = |reason: String| AdapterError::Header { reason };
    let room = source.len_bytes().checked_sub(8).ok_or_else(|| broken("it has less than 8 bytes".to_string()))?;
    let mut length = [0; 8];
    read(0, &mut length)?;
    let length = u64::from_le_bytes(length);
    if length > room.min(MAX_HEADER_BYTES) {
        return Err(broken(format!("the file states a header of {length} bytes, but has {} bytes", room + 8)));
    }
    let mut text = vec![0; length as usize];
    read(8, &mut text)?;
    let header: Metadata = serde_json::from_slice(&text).map_err(|error| broken(json_reason(&error)))?;
    Ok((8 + length, header))
}

fn factor(name: String, info: &TensorInfo, bytes: TensorBytes, config: &Config) -> Result<Factor, AdapterError> {
    let Some((module, target, side)) = parse(&name) else { return Err(AdapterError::Target { name }) };
    let ty = match info.dtype {
        Dtype::F32 => GgmlType::F32,
        Dtype::F16 => GgmlType::F16,
        Dtype::BF16 => GgmlType::BF16,
        other => return Err(AdapterError::Type { name, ty: format!("{other:?}") }),
    };
    let shape: Vec<u64> = info.shape.iter().map(|&n| n as u64).collect();
    let &[rows, cols] = shape.as_slice() else { return Err(AdapterError::Dimensions { name, found: shape }) };
    let (scale, rank) = (config.scale(module), config.rank(module));
    let factor = Factor::new(name.clone(), target, side, ty, [rows, cols], bytes)?;
    if factor.rank() != rank {
        let found = [factor.rows, factor.cols];
        let expected = if side == Side::A { [rank, factor.cols] } else { [factor.rows, rank] };
        return Err(AdapterError::Shape { name, expected, found, wanted: "but adapter_config.json requires" });
    }
    Ok(Factor { scale, ..factor })
}

/// From `base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight`: the module's name in the
/// base model, the target `blk.3.attn_q.weight`, and the side.
fn parse(name: &str) -> Option<(&str, String, Side)> {
    let name = name.strip_prefix("base_model.model.")?;
    let (module, side) = match (name.strip_suffix(".lora_A.weight"), name.strip_suffix(".lora_B.weight")) {
        (Some(module), _) => (module, Side::A),
        (_, Some(module)) => (module, Side::B),
        _ => return None,
    };
    let inner = PREFIXES.iter().find_map(|prefix| module.strip_prefix(prefix)).unwrap_or(module);
    let (layer, linear) = inner.strip_prefix("layers.")?.split_once('.')?;
    let layer = super::layer(layer)?;
    let (ours, _) = LINEARS.iter().find(|(_, theirs)| *theirs == linear)?;
    Some((module, format!("blk.{layer}.{ours}.weight"), side))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_text_models_and_of_the_text_part_of_others_are_known() {
        for prefix in PREFIXES.into_iter().chain([""]) {
            let name = format!("base_model.model.{prefix}layers.12.mlp.up_proj.lora_B.weight");
            let module = format!("{prefix}layers.12.mlp.up_proj");
            assert_eq!(parse(&name), Some((module.as_str(), "blk.12.ffn_up.weight".to_string(), Side::B)));
        }
        let first = parse("base_model.model.model.layers.0.self_attn.o_proj.lora_A.weight").unwrap();
        assert_eq!((first.1.as_str(), first.2), ("blk.0.attn_output.weight", Side::A));
    }

    #[test]
    fn names_of_anything_else_are_not() {
        for rest in [
            "model.embed_tokens.lora_embedding_A",
            "lm_head.lora_A.weight",
            "model.layers.0.self_attn.q_proj.lora_magnitude_vector",
            "model.layers.0.self_attn.q_proj.lora_B.bias",
            "model.layers.0.self_attn.q_proj.weight",
            "model.layers.00.self_attn.q_proj.lora_A.weight",
            "model.layers.+1.self_attn.q_proj.lora_A.weight",
            "model.layers.99999999999.self_attn.q_proj.lora_A.weight",
            "model.layers.0.mlp.experts.3.up_proj.lora_A.weight",
            "model.layers.0.mlp.q_proj.lora_A.weight",
            "model.vision_tower.encoder.layers.0.self_attn.q_proj.lora_A.weight",
        ] {
            assert_eq!(parse(&format!("base_model.model.{rest}")), None, "{rest}");
        }
        assert_eq!(parse("model.layers.0.self_attn.q_proj.lora_A.weight"), None);
    }
}
