//! PEFT's form of an adapter: `adapter_config.json` beside safetensors.

use super::config::Config;
use super::container::{Container, Stored};
use super::factor::BaseCopy;
use super::names::{is_tower, linear_of, takes_none};
use super::{AdapterError, Contents, EMBEDDING, Factor, OUTPUT, Side, features};
use crate::left_out::LeftOut;

/// Prefixes of the text model's layers in a checkpoint. They depend on whether the checkpoint has
/// more than text, and on the library's version.
const PREFIXES: [&str; 5] =
    ["model.language_model.", "language_model.model.", "model.model.", "language_model.", "model."];

/// A name, taken apart: the module's name in the base model, and what the tensor is there.
#[derive(Debug, PartialEq)]
enum Named<'a> {
    /// A factor of a weight of ours.
    Factor { module: &'a str, target: String, side: Side },
    /// A factor of a tower or a projector.
    Tower(&'a str),
    /// A factor of a layer that takes none.
    OtherLayer(&'a str),
    /// A weight of the base: PEFT stores the table beside its factors.
    Copy { target: &'static str },
}

/// Reads the factors.
pub(super) fn read(config: &str, file: Container) -> Result<Contents, AdapterError> {
    let config = Config::read(config)?;
    let (mut factors, mut left_out, mut copies) = (vec![], LeftOut::default(), vec![]);
    for tensor in file.tensors {
        let name = tensor.name.clone();
        match parse(&name) {
            Some(Named::Copy { target }) => copies.push(BaseCopy { shape: tensor.matrix()?, name, target }),
            Some(Named::Factor { module, target, side }) => {
                factors.push(factor(tensor, module, target, side, &config)?)
            }
            Some(Named::Tower(module)) => left_out.towers.push(module.to_string()),
            Some(Named::OtherLayer(module)) => left_out.other_layers.push(module.to_string()),
            None => return Err(features::tensor(name)),
        }
    }
    Ok(Contents { copies, ..Contents::new(factors, left_out)? })
}

fn factor(tensor: Stored, module: &str, target: String, side: Side, config: &Config) -> Result<Factor, AdapterError> {
    let (scale, rank) = (config.scale(module), config.rank(module));
    let factor = tensor.factor(target, side)?;
    let factor = if factor.target == EMBEDDING && side == Side::B { factor.transposed()? } else { factor };
    if factor.rank() != rank {
        let found = [factor.rows, factor.cols];
        let expected = if factor.rank() == factor.rows { [rank, factor.cols] } else { [factor.rows, rank] };
        return Err(AdapterError::Shape {
            name: factor.name,
            expected,
            found,
            wanted: "but adapter_config.json requires",
        });
    }
    Ok(Factor { scale, ..factor })
}

/// From `base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight`: the module's name in the
/// base model, the target `blk.3.attn_q.weight`, and the side. In a state dict of PEFT the name of
/// the adapter follows the side: `lora_A.default.weight`.
fn parse(name: &str) -> Option<Named<'_>> {
    let name = name.strip_prefix("base_model.model.")?;
    if let Some(module) = name.strip_suffix(".base_layer.weight") {
        let ends = [("embed_tokens", EMBEDDING), ("lm_head", OUTPUT)];
        return ends.into_iter().find(|(known, _)| *known == inner(module)).map(|(_, target)| Named::Copy { target });
    }
    let (module, rest) = name.split_once(".lora_")?;
    let rest: Vec<&str> = rest.split('.').collect();
    let side = match rest[..] {
        ["A" | "embedding_A", ..] => Side::A,
        ["B" | "embedding_B", ..] => Side::B,
        _ => return None,
    };
    let is_table = rest[0].starts_with("embedding_");
    let adapter = match &rest[1..] {
        adapter if is_table => adapter,
        [adapter @ .., "weight"] => adapter,
        _ => return None,
    };
    if adapter.len() > 1 || adapter.contains(&"") {
        return None;
    }
    if is_tower(module) {
        return Some(Named::Tower(module));
    }
    if takes_none(inner(module)) {
        return Some(Named::OtherLayer(module));
    }
    let (target, side) = match (is_table, side) {
        // The rows of the table are looked up in PEFT's factor A, so it is our factor B.
        (true, side) => {
            let other = if side == Side::A { Side::B } else { Side::A };
            (inner(module) == "embed_tokens").then(|| (EMBEDDING.to_string(), other))?
        }
        (false, side) => (linear_of(inner(module))?, side),
    };
    Some(Named::Factor { module, target, side })
}

/// The name of a module within the text model.
fn inner(module: &str) -> &str {
    PREFIXES.iter().find_map(|prefix| module.strip_prefix(prefix)).unwrap_or(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The module, the target and the side of a factor.
    fn factor_of(name: &str) -> Option<(&str, String, Side)> {
        match parse(name)? {
            Named::Factor { module, target, side } => Some((module, target, side)),
            Named::Tower(_) | Named::OtherLayer(_) | Named::Copy { .. } => None,
        }
    }

    #[test]
    fn names_of_text_models_and_of_the_text_part_of_others_are_known() {
        for prefix in PREFIXES.into_iter().chain([""]) {
            let name = format!("base_model.model.{prefix}layers.12.mlp.up_proj.lora_B.weight");
            let module = format!("{prefix}layers.12.mlp.up_proj");
            assert_eq!(factor_of(&name), Some((module.as_str(), "blk.12.ffn_up.weight".to_string(), Side::B)));
        }
        let first = factor_of("base_model.model.model.layers.0.self_attn.o_proj.lora_A.weight").unwrap();
        assert_eq!((first.1.as_str(), first.2), ("blk.0.attn_output.weight", Side::A));
        let head = factor_of("base_model.model.lm_head.lora_B.weight").unwrap();
        assert_eq!(head, ("lm_head", "output.weight".to_string(), Side::B));
        let table = factor_of("base_model.model.model.embed_tokens.lora_embedding_A").unwrap();
        assert_eq!(table, ("model.embed_tokens", "token_embd.weight".to_string(), Side::B));
    }

    #[test]
    fn linear_layers_of_the_embedding_per_layer_are_known() {
        for (theirs, ours) in [
            ("model.language_model.layers.3.per_layer_input_gate", "blk.3.inp_gate.weight"),
            ("model.language_model.layers.3.per_layer_projection", "blk.3.proj.weight"),
            ("model.language_model.per_layer_model_projection", "per_layer_model_proj.weight"),
            ("model.layers.0.laurel.linear_left", "blk.0.laurel_l.weight"),
            ("model.layers.0.altup.prediction_coefs", "blk.0.altup_predict_coef.weight"),
        ] {
            let name = format!("base_model.model.{theirs}.lora_A.weight");
            assert_eq!(factor_of(&name), Some((theirs, ours.to_string(), Side::A)));
        }
    }

    #[test]
    fn the_name_of_the_adapter_may_follow_the_side() {
        for adapter in ["default", "my-adapter 2", "weight"] {
            let name = format!("base_model.model.model.layers.0.self_attn.q_proj.lora_A.{adapter}.weight");
            assert_eq!(factor_of(&name).unwrap().1, "blk.0.attn_q.weight");
            let name = format!("base_model.model.model.embed_tokens.lora_embedding_B.{adapter}");
            assert_eq!(factor_of(&name).unwrap().2, Side::A);
        }
        for rest in [
            "A..weight",
            "A.a.b.weight",
            "A.default",
            "A.default.bias",
            "embedding_A.",
            "embedding_A.a.b",
            "C.weight",
            "A",
        ] {
            assert_eq!(parse(&format!("base_model.model.model.embed_tokens.lora_{rest}")), None, "{rest}");
            assert_eq!(parse(&format!("base_model.model.model.layers.0.self_attn.q_proj.lora_{rest}")), None, "{rest}");
        }
    }

    #[test]
    fn factors_of_towers_and_projectors_are_known_as_such() {
        for module in [
            "model.vision_tower.vision_model.encoder.layers.0.self_attn.q_proj",
            "vision_tower.encoder.layers.0.mlp.fc1",
            "model.multi_modal_projector.mm_input_projection",
            "model.audio_tower.conformer.0.attention.attn.q_proj",
            "model.embed_vision.embedding_projection",
            "model.visual.blocks.3.attn.qkv",
        ] {
            for rest in ["A.weight", "B.default.weight"] {
                let name = format!("base_model.model.{module}.lora_{rest}");
                assert_eq!(parse(&name), Some(Named::Tower(module)));
            }
            assert_eq!(parse(&format!("base_model.model.{module}.lora_magnitude_vector")), None);
        }
    }

    #[test]
    fn layers_that_take_no_factors_are_known_as_such() {
        for module in [
            "model.language_model.altup_projections.0",
            "model.language_model.altup_unembed_projections.2",
            "model.layers.1.mlp.experts.127.down_proj",
            "model.layers.1.mlp.gate",
            "model.layers.1.mlp.shared_expert.up_proj",
            "model.layers.1.mlp.shared_expert_gate",
            "model.language_model.layers.1.router.proj",
        ] {
            assert_eq!(parse(&format!("base_model.model.{module}.lora_A.weight")), Some(Named::OtherLayer(module)));
        }
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
            "model.layers.00.mlp.experts.3.up_proj.lora_A.weight",
            "model.layers.0.mlp.gate.3.lora_A.weight",
            "model.altup_projections.lora_A.weight",
            "model.altup_projections.x.lora_A.weight",
            "model.layers.0.mlp.q_proj.lora_A.weight",
            "model.layers.0.visuals.q_proj.lora_A.weight",
        ] {
            assert_eq!(parse(&format!("base_model.model.{rest}")), None, "{rest}");
        }
        assert_eq!(parse("model.layers.0.self_attn.q_proj.lora_A.weight"), None);
    }
}
