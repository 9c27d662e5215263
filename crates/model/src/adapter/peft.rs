//! PEFT's form of an adapter: `adapter_config.json` beside safetensors.

use super::config::Config;
use super::container::{Container, Stored};
use super::{AdapterError, EMBEDDING, Factor, LINEARS, OUTPUT, Pair, Side, pair_up};

/// Prefixes of the text model's layers in a checkpoint. They depend on whether the checkpoint has
/// more than text, and on the library's version.
const PREFIXES: [&str; 5] = ["model.language_model.", "language_model.model.", "model.model.", "language_model.", "model."];

/// Pairs the factors.
pub(super) fn read(config: &str, file: Container) -> Result<Vec<Pair>, AdapterError> {
    let config = Config::read(config)?;
    pair_up(file.tensors.into_iter().map(|tensor| factor(tensor, &config)).collect::<Result<_, _>>()?)
}

fn factor(tensor: Stored, config: &Config) -> Result<Factor, AdapterError> {
    let name = tensor.name.clone();
    let Some((module, target, side)) = parse(&name) else { return Err(AdapterError::Target { name }) };
    let (scale, rank) = (config.scale(module), config.rank(module));
    let factor = tensor.factor(target, side)?;
    let factor = if factor.target == EMBEDDING && side == Side::B { factor.transposed()? } else { factor };
    if factor.rank() != rank {
        let found = [factor.rows, factor.cols];
        let expected = if factor.rank() == factor.rows { [rank, factor.cols] } else { [factor.rows, rank] };
        return Err(AdapterError::Shape { name, expected, found, wanted: "but adapter_config.json requires" });
    }
    Ok(Factor { scale, ..factor })
}

/// From `base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight`: the module's name in the
/// base model, the target `blk.3.attn_q.weight`, and the side.
fn parse(name: &str) -> Option<(&str, String, Side)> {
    let name = name.strip_prefix("base_model.model.")?;
    // The rows of the table are looked up in PEFT's factor A, so it is our factor B.
    for (suffix, side) in [(".lora_embedding_A", Side::B), (".lora_embedding_B", Side::A)] {
        if let Some(module) = name.strip_suffix(suffix) {
            return (inner(module) == "embed_tokens").then(|| (module, EMBEDDING.to_string(), side));
        }
    }
    let (module, side) = match (name.strip_suffix(".lora_A.weight"), name.strip_suffix(".lora_B.weight")) {
        (Some(module), _) => (module, Side::A),
        (_, Some(module)) => (module, Side::B),
        _ => return None,
    };
    if inner(module) == "lm_head" {
        return Some((module, OUTPUT.to_string(), side));
    }
    let (layer, linear) = inner(module).strip_prefix("layers.")?.split_once('.')?;
    let layer = super::layer(layer)?;
    let (ours, _) = LINEARS.iter().find(|(_, theirs)| *theirs == linear)?;
    Some((module, format!("blk.{layer}.{ours}.weight"), side))
}

/// The name of a module within the text model.
fn inner(module: &str) -> &str {
    PREFIXES.iter().find_map(|prefix| module.strip_prefix(prefix)).unwrap_or(module)
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
        let head = parse("base_model.model.lm_head.lora_B.weight").unwrap();
        assert_eq!(head, ("lm_head", "output.weight".to_string(), Side::B));
        let table = parse("base_model.model.model.embed_tokens.lora_embedding_A").unwrap();
        assert_eq!(table, ("model.embed_tokens", "token_embd.weight".to_string(), Side::B));
    }

    #[test]
    fn names_of_anything_else_are_not() {
        for rest in [
            "model.embed_tokens.lora_A.weight",
            "model.embed_tokens_per_layer.lora_embedding_A",
            "lm_head.lora_embedding_A",
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
