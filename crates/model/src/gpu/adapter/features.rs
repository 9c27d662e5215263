//! What adapters have beyond LoRA, in words: what a refused key or tensor means, and the way out.

use super::AdapterError;

/// The way out for what PEFT can add to the weights of the base.
const MERGE: &str = "merge the adapter into its base with PEFT (merge_and_unload, then save_pretrained) and convert the merged model with \
                     llama.cpp's convert_hf_to_gguf.py";

/// The way out for what is no change of weights.
const RETRAIN: &str = "train again with LoRA (peft_type LORA)";

/// Keys of PEFT and llama.cpp: what they mean where they are set, and how to train without them.
const KEYS: [(&str, &str, &str); 10] = [
    ("use_dora", "DoRA, which also scales the rows of the weights", "without use_dora"),
    (
        "modules_to_save",
        "whole modules that are trained beside the factors",
        "with factors of these modules: target_modules",
    ),
    ("bias", "trained biases", "with bias none"),
    ("lora_bias", "biases of factors", "without lora_bias"),
    ("trainable_token_indices", "trained rows of the embedding", "with factors of embed_tokens: target_modules"),
    ("target_parameters", "factors of weights that are no linear layers, such as experts", "with target_modules"),
    ("layer_replication", "layers that are used several times", "without layer_replication"),
    ("fan_in_fan_out", "factors of weights that lie transposed", "without fan_in_fan_out"),
    ("init_lora_weights", "a start that changes the weights of the base", "with init_lora_weights true"),
    ("peft_type", "another method than LoRA", "with LORA"),
];

/// Methods that change no weights, so that nothing can be merged.
const PROMPTS: [&str; 6] =
    ["PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "ADAPTION_PROMPT", "CPT"];

/// The error for a key that is set to a value beyond LoRA.
pub(super) fn feature(key: &str, value: String) -> AdapterError {
    let value: String = value.chars().take(40).collect();
    let known = KEYS.iter().find(|(known, ..)| *known == key);
    let means = known.map_or(String::new(), |(_, means, _)| format!(" ({means})"));
    let out = match known {
        _ if key.contains("alora") => RETRAIN.to_string(),
        _ if key == "peft_type" && PROMPTS.contains(&value.as_str()) => RETRAIN.to_string(),
        Some((.., without)) => format!("{MERGE}, or train again {without}"),
        None => format!("{MERGE}, or train again without it"),
    };
    AdapterError::Feature { key: key.to_string(), value, means, out }
}

/// The error for a tensor that is no factor.
pub(super) fn tensor(name: String) -> AdapterError {
    let what = match name.rsplit('.').next() {
        _ if name.contains(".lora_magnitude_vector") => "a magnitude of DoRA",
        _ if name.contains(".modules_to_save.") => {
            "of a whole module that was trained beside the factors (modules_to_save)"
        }
        _ if name.contains(".lora_") => return AdapterError::Target { name },
        Some("weight" | "bias") => "a whole weight and no factor, as modules_to_save and trained biases leave it",
        _ => return AdapterError::Target { name },
    };
    AdapterError::Whole { name, what, out: MERGE }
}
