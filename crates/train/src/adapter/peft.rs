//! PEFT's form of an adapter: `adapter_config.json` beside `adapter_model.safetensors`.

use crate::error::Error;
use crate::files::{TensorF32, serialized};
use gguf::Directory;
use model::{EMBEDDING, FactorPair, Model, peft_module, transpose};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The two files of the form.
const CONFIG: &str = "adapter_config.json";
const TENSORS: &str = "adapter_model.safetensors";

/// The text model's prefix in a checkpoint that has nothing but text.
const TEXT: &str = "model";

/// What an adapter's folder states beside the factors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PeftOptions {
    /// The module of the text model in the checkpoint of transformers: `model`, or for example
    /// `model.language_model` in a checkpoint that also sees.
    pub prefix: String,
    /// The base model's repository or folder.
    pub base: Option<String>,
    /// Number of layers of the base model. If it is known, a kind of layer that has factors
    /// everywhere is named once, as `q_proj`; else every module is named.
    pub layers: Option<u32>,
    /// Whether a scale is stated as alpha / sqrt(rank), not as alpha / rank.
    pub rslora: bool,
    /// The dropout of the training. It is of no effect on results.
    pub dropout: f32,
}

impl Default for PeftOptions {
    fn default() -> Self {
        Self { prefix: TEXT.to_string(), base: None, layers: None, rslora: false, dropout: 0.0 }
    }
}

impl PeftOptions {
    /// The options for a model: its layers, and the repository that its file names.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let text = |key: &str| model.file().get_opt::<String>(key).ok().flatten();
        let url = || Some(text("general.source.repo_url")?.strip_prefix("https://huggingface.co/")?.to_string());
        let base = text("general.source.huggingface.repository").or_else(url);
        Self { base, layers: Some(model.summary().block_count), ..Self::default() }
    }

    /// The module of the text model in the checkpoint of transformers.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// The base model's repository or folder.
    #[must_use]
    pub fn base(self, base: impl Into<String>) -> Self {
        Self { base: Some(base.into()), ..self }
    }

    /// Whether a scale is stated as alpha / sqrt(rank).
    #[must_use]
    pub fn rslora(self, rslora: bool) -> Self {
        Self { rslora, ..self }
    }

    /// The dropout of the training.
    #[must_use]
    pub fn dropout(self, dropout: f32) -> Self {
        Self { dropout, ..self }
    }
}

/// Writes factors as a folder that PEFT loads: `adapter_config.json` and
/// `adapter_model.safetensors`, f32.
///
/// Each file is written whole or not at all. If the folder has an adapter of another configuration,
/// the old configuration is removed before the new factors appear, and the new one comes last: a
/// folder that is read in between is refused, and never applied with a wrong scale. Factors of the
/// same configuration replace each other in one step.
///
/// # Errors
/// [`Error::NoForm`] for factors that have no name in PEFT's form, and [`Error::File`].
pub fn write_peft(into: &dyn Directory, factors: &[FactorPair], options: &PeftOptions) -> Result<(), Error> {
    let mut modules = vec![];
    for pair in factors {
        let module = peft_module(&options.prefix, &pair.target);
        modules.push(module.ok_or_else(|| Error::no_form(format!("PEFT has no name for factors of {}", pair.target)))?);
    }
    if modules.is_empty() {
        return Err(Error::no_form("there are no factors"));
    }
    let config = format!("{:#}\n", config(factors, &modules, options));
    let stays = into.read(CONFIG, config.len() as u64 + 1).is_ok_and(|old| old == config.as_bytes());
    let tensors = serialized(factors.iter().zip(&modules).flat_map(|(pair, module)| tensors(pair, module)).collect())?;
    into.write(TENSORS, &mut |out| {
        out.write_all(&tensors)?;
        out.flush()?;
        if stays { Ok(()) } else { into.remove(CONFIG) }
    })?;
    if stays { Ok(()) } else { Ok(into.write(CONFIG, &mut |out| out.write_all(config.as_bytes()))?) }
}

fn tensors(pair: &FactorPair, module: &str) -> [TensorF32; 2] {
    let rank = pair.rank as usize;
    let rows = |values: &[f32]| (values.len() / rank) as u32;
    if pair.target == EMBEDDING {
        // PEFT looks ids up in the columns of its factor A.
        let name = |side: &str| format!("base_model.model.{module}.lora_embedding_{side}");
        let [a, b] = [transpose(&pair.b, rank), transpose(&pair.a, pair.a.len() / rank)];
        return [
            TensorF32::new(name("A"), vec![pair.rank, rows(&a)], &a),
            TensorF32::new(name("B"), vec![rows(&b), pair.rank], &b),
        ];
    }
    let name = |side: &str| format!("base_model.model.{module}.lora_{side}.weight");
    [
        TensorF32::new(name("A"), vec![pair.rank, rows(&pair.a)], &pair.a),
        TensorF32::new(name("B"), vec![rows(&pair.b), pair.rank], &pair.b),
    ]
}

/// The configuration, with the keys that PEFT writes for every adapter of this kind.
fn config(factors: &[FactorPair], modules: &[String], options: &PeftOptions) -> Value {
    let (rank, alpha) = (factors[0].rank, alpha(&factors[0], options.rslora));
    let (mut ranks, mut alphas) = (Map::new(), Map::new());
    for (pair, module) in factors.iter().zip(modules) {
        if pair.rank != rank {
            ranks.insert(module.clone(), pair.rank.into());
        }
        let own = self::alpha(pair, options.rslora);
        if own != alpha {
            alphas.insert(module.clone(), number(own));
        }
    }
    json!({
        "alpha_pattern": alphas,
        "auto_mapping": null,
        "base_model_name_or_path": options.base,
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
        "init_lora_weights": true,
        "layers_pattern": null,
        "layers_to_transform": null,
        "lora_alpha": number(alpha),
        "lora_dropout": shortest(options.dropout),
        "modules_to_save": null,
        "peft_type": "LORA",
        "r": rank,
        "rank_pattern": ranks,
        "revision": null,
        "target_modules": target_modules(modules, options),
        "task_type": "CAUSAL_LM",
        "use_dora": false,
        "use_rslora": options.rslora,
    })
}

/// The sorted names by which PEFT finds the modules. A kind of module that has factors in every
/// layer of a model of text goes by its last name. Other names are whole: the last name would also
/// match modules of other layers, and of a tower that sees.
fn target_modules(modules: &[String], options: &PeftOptions) -> BTreeSet<String> {
    let mut kinds: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for module in modules {
        let (_, kind) = module.rsplit_once('.').unwrap_or(("", module));
        kinds.entry(kind).or_default().push(module);
    }
    let everywhere = |all: &[&String]| {
        let one = !all[0].contains(".layers.");
        one || options.prefix == TEXT && options.layers == Some(all.len() as u32)
    };
    let names = |(kind, all): (&str, Vec<&String>)| match everywhere(&all) {
        true => vec![kind.to_string()],
        false => all.into_iter().cloned().collect(),
    };
    kinds.into_iter().flat_map(names).collect()
}

/// The alpha that gives a pair's scale. PEFT divides in f64, so of the numbers that give the same
/// f32 the shortest is stated.
fn alpha(pair: &FactorPair, rslora: bool) -> f64 {
    let rank = f64::from(pair.rank);
    let by = if rslora { rank.sqrt() } else { rank };
    let exact = f64::from(pair.scale) * by;
    let same = |alpha: &f64| (alpha / by) as f32 == pair.scale;
    [exact.round(), f64::from(exact as f32)].into_iter().find(same).unwrap_or(exact)
}

/// The shortest decimal that reads as this f32.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// An integer without a fraction, as PEFT's alphas are by type.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { whole.into() } else { value.into() }
}
