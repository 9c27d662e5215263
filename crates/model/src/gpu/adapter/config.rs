//! PEFT's `adapter_config.json`: ranks and scales by module. Features beyond LoRA are refused.

use super::AdapterError;
use super::features::feature;
use crate::error::json_reason;
use regex_lite::Regex;
use serde_json::{Map, Value};

/// Keys that do not change the meaning of the factors. Any other key that is set is refused by
/// name.
const HARMLESS: [&str; 26] = [
    "alpha_pattern",
    "auto_mapping",
    "base_model_name_or_path",
    "bias",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "init_lora_weights",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_alpha",
    "lora_dropout",
    "megatron_config",
    "megatron_core",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
    "use_rslora",
];

/// Initializations of the factors that leave the base weights unchanged. Other initializations
/// change them, so the adapter would not match.
const PLAIN_STARTS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

/// Keys by which MLX's configuration is known, which has the name of PEFT's.
const MLX_KEYS: [&str; 3] = ["fine_tune_type", "lora_parameters", "lora_layers"];

/// Ranks and scales by module.
pub(super) struct Config {
    rank: u32,
    alpha: f64,
    /// Divides alpha by the square root of the rank. (Kalajdzievski 2023, arXiv 2312.03732.)
    rank_stabilized: bool,
    ranks: Vec<(Regex, u32)>,
    alphas: Vec<(Regex, f64)>,
}

impl Config {
    pub fn read(text: &str) -> Result<Self, AdapterError> {
        let config: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| AdapterError::Config { reason: json_reason(&error) })?;
        refuse_features(&config)?;
        let of = |key: &str| config.get(key).unwrap_or(&Value::Null);
        Ok(Self {
            rank: rank("r", of("r"))?,
            alpha: alpha("lora_alpha", of("lora_alpha"))?,
            rank_stabilized: of("use_rslora").as_bool().unwrap_or(false),
            ranks: patterns("rank_pattern", of("rank_pattern"), rank)?,
            alphas: patterns("alpha_pattern", of("alpha_pattern"), alpha)?,
        })
    }

    /// The rank of a module, by its name in the base model.
    pub fn rank(&self, module: &str) -> u32 {
        found(&self.ranks, module).unwrap_or(self.rank)
    }

    /// The factor on the product of a module's factors.
    pub fn scale(&self, module: &str) -> f32 {
        let rank = f64::from(self.rank(module));
        let alpha = found(&self.alphas, module).unwrap_or(self.alpha);
        (alpha / if self.rank_stabilized { rank.sqrt() } else { rank }) as f32
    }
}

fn refuse_features(config: &Map<String, Value>) -> Result<(), AdapterError> {
    let kind = config.get("peft_type").and_then(Value::as_str);
    if kind.is_none() && MLX_KEYS.iter().any(|key| config.contains_key(*key)) {
        return Err(AdapterError::Mlx);
    }
    let kind = kind.ok_or_else(|| AdapterError::Config { reason: "peft_type is missing".to_string() })?;
    if kind != "LORA" {
        return Err(feature("peft_type", kind.to_string()));
    }
    let plain = |key: &str, value: &Value| match (key, value) {
        ("bias", _) => value.is_null() || value == "none",
        // False leaves factors random, and their values are in the file.
        ("init_lora_weights", Value::String(name)) => PLAIN_STARTS.contains(&name.to_lowercase().as_str()),
        _ => HARMLESS.contains(&key) || unset(value),
    };
    match config.iter().find(|(key, value)| !plain(key, value)) {
        Some((key, value)) => Err(feature(key, value.to_string())),
        None => Ok(()),
    }
}

/// Null, false, zero or empty.
fn unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
    }
}

fn rank(key: &str, value: &Value) -> Result<u32, AdapterError> {
    let found = value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
    found.ok_or_else(|| AdapterError::Config { reason: format!("{key} is {value}, not a rank") })
}

fn alpha(key: &str, value: &Value) -> Result<f64, AdapterError> {
    let found = value.as_f64().filter(|n| n.is_finite());
    found.ok_or_else(|| AdapterError::Config { reason: format!("{key} is {value}, not a finite number") })
}

/// A value per pattern, in the order of the file. A pattern is a regular expression for the end of
/// a module's name, from the name's start or a dot.
fn patterns<T>(
    key: &str,
    value: &Value,
    read: impl Fn(&str, &Value) -> Result<T, AdapterError>,
) -> Result<Vec<(Regex, T)>, AdapterError> {
    let entries = match value {
        Value::Null => return Ok(vec![]),
        Value::Object(entries) => entries,
        _ => return Err(AdapterError::Config { reason: format!("{key} is not an object") }),
    };
    let one = |(pattern, value): (&String, &Value)| {
        let name = format!("{key}.{pattern}");
        let whole = Regex::new(&format!(r"^(?:.*\.)?(?:{pattern})$"));
        let whole = whole.map_err(|error| AdapterError::Config { reason: format!("{name}: {error}") })?;
        Ok((whole, read(&name, value)?))
    };
    entries.iter().map(one).collect()
}

fn found<T: Copy>(patterns: &[(Regex, T)], module: &str) -> Option<T> {
    patterns.iter().find(|(pattern, _)| pattern.is_match(module)).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(more: &str) -> Result<Config, AdapterError> {
        Config::read(&format!(r#"{{"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none"{more}}}"#))
    }

    #[test]
    fn the_first_pattern_that_fits_the_end_of_the_name_decides() {
        let config = with(
            r#", "rank_pattern": {"^model.layers.0.self_attn.q_proj": 2, "q_proj": 16},
               "alpha_pattern": {"layers\\.[12]\\..*": 3, "self_attn.k_proj": 1.5}"#,
        );
        let config = config.unwrap();
        let of = |module: &str| (config.rank(module), config.scale(module));
        assert_eq!(of("model.layers.0.self_attn.q_proj"), (2, 4.0));
        assert_eq!(of("model.language_model.layers.0.self_attn.q_proj"), (16, 0.5));
        assert_eq!(of("model.layers.2.self_attn.q_proj"), (16, 3.0 / 16.0));
        assert_eq!(of("model.layers.2.self_attn.k_proj"), (4, 0.75));
        assert_eq!(of("model.layers.3.self_attn.k_proj"), (4, 0.375));
        assert_eq!(of("model.layers.3.mlp.xq_proj"), (4, 2.0), "a pattern begins at a dot");
        let config = with(r#", "use_rslora": true, "rank_pattern": {"up_proj": 64}"#).unwrap();
        assert_eq!((config.scale("mlp.up_proj"), config.scale("mlp.down_proj")), (1.0, 4.0));
    }

    #[test]
    fn what_is_more_than_lora_is_refused_by_its_name() {
        let features = [
            ("use_dora", "true"),
            ("bias", "\"all\""),
            ("bias", "\"lora_only\""),
            ("lora_bias", "true"),
            ("modules_to_save", "[\"lm_head\"]"),
            ("fan_in_fan_out", "true"),
            ("trainable_token_indices", "[1]"),
            ("target_parameters", "[\"experts.gate_up_proj\"]"),
            ("layer_replication", "[[0,2]]"),
            ("alora_invocation_tokens", "[7]"),
            ("init_lora_weights", "\"pissa_niter_4\""),
            ("init_lora_weights", "\"olora\""),
            ("of_tomorrow", "{\"a\":1}"),
        ];
        for (key, value) in features {
            let error = with(&format!(r#", "{key}": {value}"#)).err().unwrap().to_string();
            assert!(error.starts_with(&format!("{key} = {value} is not supported")), "{error}");
            let out = if key.starts_with("alora") { "train again with LoRA" } else { "merge_and_unload" };
            assert!(error.contains(out), "{error}");
        }
        for (kind, out) in
            [("LOHA", "merge_and_unload"), ("IA3", "merge_and_unload"), ("PREFIX_TUNING", "train again with LoRA")]
        {
            let error = Config::read(&format!(r#"{{"peft_type": "{kind}"}}"#)).err().unwrap().to_string();
            assert!(
                error.contains(&format!("peft_type = {kind} is not supported (another method")) && error.contains(out),
                "{error}"
            );
        }
        assert!(Config::read("{}").err().unwrap().to_string().contains("peft_type is missing"));
        assert!(
            with(r#", "use_dora": null, "modules_to_save": [], "qalora_group_size": 16, "init_lora_weights": "eva""#)
                .is_ok()
        );
        // The tensors of the file say which modules have factors.
        let chosen = r#", "layers_to_transform": [1], "layers_pattern": "layers", "exclude_modules": "lm_head", "init_lora_weights": "Gaussian""#;
        assert!(with(chosen).is_ok());
    }

    #[test]
    fn the_configuration_of_mlx_is_told_by_its_keys() {
        for text in [
            r#"{"fine_tune_type": "lora", "num_layers": 16}"#,
            r#"{"lora_layers": 8}"#,
            r#"{"lora_parameters": {"rank": 8}}"#,
        ] {
            let error = Config::read(text).err().unwrap().to_string();
            assert!(error.starts_with("this is an adapter of MLX") && error.contains("mlx_lm.fuse"), "{error}");
        }
    }

    #[test]
    fn numbers_that_are_none_and_patterns_that_are_none_are_named() {
        for (more, named) in [
            (r#", "rank_pattern": {"q_proj": 0}"#, "rank_pattern.q_proj is 0"),
            (r#", "rank_pattern": {"q_proj": -1}"#, "rank_pattern.q_proj"),
            (r#", "alpha_pattern": {"q_proj": "8"}"#, "alpha_pattern.q_proj"),
            (r#", "alpha_pattern": {"q_(proj": 8}"#, "alpha_pattern.q_(proj"),
            (r#", "rank_pattern": [4]"#, "rank_pattern"),
            (r#", "r": 4.5"#, "r is 4.5"),
            (r#", "r": 99999999999"#, "r is 99999999999"),
            (r#", "lora_alpha": null"#, "lora_alpha is null"),
            (",", "adapter_config.json: "),
        ] {
            let error = with(more).err().unwrap_or_else(|| panic!("{more} is accepted")).to_string();
            assert!(error.contains(named), "{error} lacks {named}");
        }
    }
}
