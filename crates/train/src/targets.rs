//! Which weights get low-rank factors, and the first values of the factors.

use crate::error::Error;
use crate::random::{normal, uniform};
use kernels::{Weight, Weights};
use model::{EMBEDDING, FactorPair, OUTPUT};
use std::str::FromStr;

/// The linear layers that adapters are added to: our short name, a group, and the tensor's name.
const LINEARS: [(&str, &str, &str); 15] = [
    ("q", "attn", "attn_q"),
    ("k", "attn", "attn_k"),
    ("v", "attn", "attn_v"),
    ("o", "attn", "attn_output"),
    ("gate", "mlp", "ffn_gate"),
    ("up", "mlp", "ffn_up"),
    ("down", "mlp", "ffn_down"),
    ("per_layer_input_gate", "per_layer", "inp_gate"),
    ("per_layer_projection", "per_layer", "proj"),
    ("per_layer_model_projection", "per_layer", BEFORE_BLOCKS),
    ("laurel_l", "laurel", "laurel_l"),
    ("laurel_r", "laurel", "laurel_r"),
    ("altup_router", "altup", "altup_router"),
    ("altup_predict_coef", "altup", "altup_predict_coef"),
    ("altup_correct_coef", "altup", "altup_correct_coef"),
];

/// Names that PEFT has with `_proj` behind them.
const SHORT: [&str; 7] = ["q", "k", "v", "o", "gate", "up", "down"];

/// The linear layer that is before the blocks.
const BEFORE_BLOCKS: &str = "per_layer_model_proj";

/// The two ends of a model, which only their own names choose: our short name, and the tensor's.
const ENDS: [(&str, &str); 2] = [("embed", EMBEDDING), ("head", OUTPUT)];

/// The weights that get factors: names of linear layers, groups of them, or patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets(Vec<String>);

impl Default for Targets {
    /// All linear layers.
    fn default() -> Self {
        Self(vec!["all".to_string()])
    }
}

impl FromStr for Targets {
    type Err = String;

    /// A list with commas of names, groups, and patterns over tensor names in which `*` stands for
    /// any text: `blk.3.*`, `*attn_q*`. Of what a pattern names, only linear layers count.
    ///
    /// * `attn` is `q`, `k`, `v`, `o`; `mlp` is `gate`, `up`, `down`.
    /// * `per_layer` is `per_layer_input_gate`, `per_layer_projection` and
    ///   `per_layer_model_projection`, in Gemma 3n and Gemma 4 E.
    /// * `laurel` and `altup` are the low-rank residual and the coefficients of the streams, in
    ///   Gemma 3n.
    /// * PEFT's names are known too: `q_proj`, .., `down_proj`, `lm_head`, `embed_tokens` and
    ///   `all-linear`.
    /// * `all` is all of these that the model has, as PEFT's `all-linear`. (PEFT adds the
    ///   projections between the streams of Gemma 3n, which take no factors here.) It does not
    ///   contain `embed` (what ids become) and `head` (logits), which are two targets also where
    ///   one tensor serves both.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names: Vec<String> = text.split(',').map(|name| ours(name.trim()).to_string()).collect();
        let linear = |name: &str| LINEARS.iter().any(|(short, group, _)| [*short, *group].contains(&name));
        let known = |name: &str| name == "all" || linear(name) || ENDS.iter().any(|(short, _)| *short == name);
        match names.iter().find(|name| !known(name) && !name.contains(['*', '.'])) {
            Some(name) => {
                let known = "all, attn, mlp, per_layer, laurel, altup, q, k, v, o, gate, up, down, embed, head";
                Err(format!("\"{name}\" is none of {known}, and no pattern with * or ."))
            }
            None => Ok(Self(names)),
        }
    }
}

impl std::fmt::Display for Targets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// Our name of a target that PEFT calls otherwise.
fn ours(name: &str) -> &str {
    match name {
        "all-linear" => "all",
        "lm_head" => "head",
        "embed_tokens" => "embed",
        _ => name.strip_suffix("_proj").filter(|ours| SHORT.contains(ours)).unwrap_or(name),
    }
}

/// The short name and the group of a tensor, if it is a linear layer.
fn linear(tensor: &str) -> Option<(&'static str, &'static str)> {
    let name = tensor.strip_suffix(".weight")?;
    let name = match name.strip_prefix("blk.") {
        Some(rest) => rest.split_once('.')?.1,
        None => Some(name).filter(|name| *name == BEFORE_BLOCKS)?,
    };
    LINEARS.iter().find(|(.., ours)| *ours == name).map(|(short, group, _)| (*short, *group))
}

/// Whether `text` matches `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            match rest.find(before) {
                Some(at) => rest = &rest[at + before.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

impl Targets {
    /// The weights of a model that are meant, in the order of its file; then `output.weight`, which
    /// is the embedding table where the two are one, and `token_embd.weight`.
    ///
    /// # Errors
    /// [`Error::NotTrained`] for a pattern that names experts, or no linear layer among other
    /// tensors; [`Error::NoTarget`] for one that names nothing.
    pub fn resolve(&self, weights: &Weights) -> Result<Vec<(String, Weight)>, Error> {
        let all: Vec<(&str, Weight)> = weights.iter().collect();
        let mut chosen = vec![false; all.len()];
        let mut ends = vec![];
        for target in &self.0 {
            if let Some((_, name)) = ENDS.iter().find(|(short, _)| short == target) {
                let weight = |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, weight)| *weight);
                let tied = if *name == OUTPUT { weight(EMBEDDING) } else { None };
                let weight = weight(name).or(tied).ok_or_else(|| Error::NoTarget { target: target.clone() })?;
                ends.push(((*name).to_string(), weight));
                continue;
            }
            let named = |(short, group): (&str, &str)| ["all", short, group].contains(&target.as_str());
            let (mut found, mut other) = (false, None);
            for (chosen, (name, _)) in chosen.iter_mut().zip(&all) {
                let is_pattern = target.contains(['*', '.']);
                let meant = if is_pattern { matches(target, name) } else { linear(name).is_some_and(named) };
                let meant_linear = meant && linear(name).is_some();
                if meant && name.contains("_exps") {
                    return Err(Error::NotTrained { target: (*name).to_string(), reason: "experts get no adapters" });
                }
                other = other.or((meant && !meant_linear).then_some(name));
                found |= meant_linear;
                *chosen |= meant_linear;
            }
            match other {
                _ if found => {}
                Some(name) => {
                    let reason = "adapters go over linear layers";
                    return Err(Error::NotTrained { target: (*name).to_string(), reason });
                }
                None => return Err(Error::NoTarget { target: target.clone() }),
            }
        }
        let chosen = all
            .into_iter()
            .zip(chosen)
            .filter(|(_, chosen)| *chosen)
            .map(|((name, weight), _)| (name.to_string(), weight));
        ends.sort_by(|a, b| a.0.cmp(&b.0));
        ends.dedup();
        Ok(chosen.chain(ends).collect())
    }

    /// New factors for these weights as PEFT makes them: A uniform between -1/sqrt(K) and 1/sqrt(K)
    /// (Kaiming's bound for a slope of sqrt(5)), or normal for `embed`; B zero. Each element
    /// depends on the seed, the name of the tensor and its index only.
    ///
    /// # Errors
    /// As [`Targets::resolve`].
    pub fn factors(&self, weights: &Weights, rank: u32, scale: f32, seed: u64) -> Result<Vec<FactorPair>, Error> {
        let pair = |(target, weight): (String, Weight)| {
            let bound = 1.0 / f64::from(weight.cols).sqrt();
            let draw =
                |i| if target == EMBEDDING { normal(seed, &target, i) } else { bound * uniform(seed, &target, i) };
            let a = (0..rank * weight.cols).map(|i| draw(i) as f32).collect();
            FactorPair { rank, scale, a, b: vec![0.0; (weight.rows * rank) as usize], target }
        };
        Ok(self.resolve(weights)?.into_iter().map(pair).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::Executor;

    fn weights_of(names: &[&str]) -> Weights {
        let mut weights = Weights::new(&Executor::Cpu);
        for name in names {
            weights.vector(&format!("{name}.weight"), vec![0.0; 8]);
        }
        weights
    }

    fn weights() -> Weights {
        weights_of(&[
            "token_embd",
            "blk.0.attn_q",
            "blk.0.attn_output",
            "blk.0.ffn_up_exps",
            "blk.1.attn_norm",
            "blk.1.attn_q",
            "blk.1.ffn_down",
        ])
    }

    fn names(targets: &str) -> Result<String, String> {
        names_in(targets, &weights())
    }

    fn names_in(targets: &str, weights: &Weights) -> Result<String, String> {
        let found = targets.parse::<Targets>()?.resolve(weights).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn layers_of_the_embedding_per_layer_are_linear_layers() {
        let gemma = weights_of(&[
            "per_layer_token_embd",
            "per_layer_model_proj",
            "per_layer_proj_norm",
            "blk.0.attn_q",
            "blk.0.inp_gate",
            "blk.0.proj",
            "blk.0.post_norm",
            "blk.0.laurel_l",
            "blk.0.altup_router",
        ]);
        let of = |targets: &str| names_in(targets, &gemma);
        let per_layer = "per_layer_model_proj.weight blk.0.inp_gate.weight blk.0.proj.weight";
        assert_eq!(of("per_layer").as_deref(), Ok(per_layer));
        assert_eq!(
            of("per_layer_input_gate,per_layer_projection,per_layer_model_projection").as_deref(),
            Ok(per_layer)
        );
        let all = "per_layer_model_proj.weight blk.0.attn_q.weight blk.0.inp_gate.weight blk.0.proj.weight blk.0.laurel_l.weight \
                   blk.0.altup_router.weight";
        assert_eq!(of("all").as_deref(), Ok(all));
        assert_eq!(of("per_layer*").as_deref(), Ok("per_layer_model_proj.weight"));
        assert_eq!(of("laurel,altup").as_deref(), Ok("blk.0.laurel_l.weight blk.0.altup_router.weight"));
        assert!(of("per_layer_token_embd.weight").unwrap_err().contains("go over linear layers"));
        assert_eq!(names("per_layer"), Err("the model has no weight per_layer".to_string()));
    }

    #[test]
    fn every_linear_layer_has_a_name_in_files_of_peft() {
        for (.., ours) in LINEARS {
            let target = if ours == BEFORE_BLOCKS { format!("{ours}.weight") } else { format!("blk.3.{ours}.weight") };
            assert!(model::peft_module("model", &target).is_some() && linear(&target).is_some(), "{target}");
        }
    }

    #[test]
    fn groups_names_and_patterns_choose_linear_layers() {
        let all = "blk.0.attn_q.weight blk.0.attn_output.weight blk.1.attn_q.weight blk.1.ffn_down.weight";
        assert_eq!(names("all").as_deref(), Ok(all));
        assert_eq!(names("attn").as_deref(), Ok("blk.0.attn_q.weight blk.0.attn_output.weight blk.1.attn_q.weight"));
        assert_eq!(names("down,o").as_deref(), Ok("blk.0.attn_output.weight blk.1.ffn_down.weight"));
        assert_eq!(names("blk.1.*").as_deref(), Ok("blk.1.attn_q.weight blk.1.ffn_down.weight"));
        assert_eq!(names("*.attn_q.*t").as_deref(), Ok("blk.0.attn_q.weight blk.1.attn_q.weight"));
    }

    #[test]
    fn the_two_ends_are_chosen_by_their_names_and_may_share_a_tensor() {
        assert_eq!(
            names("embed,blk.1.attn_q.weight,head,embed").as_deref(),
            Ok("blk.1.attn_q.weight output.weight token_embd.weight")
        );
        let factors = "head,embed".parse::<Targets>().expect("names").factors(&weights(), 4, 1.0, 3).expect("factors");
        assert!(
            factors[0].a.iter().all(|v| v.abs() <= 1.0 / 8.0f32.sqrt()) && factors[1].a.iter().any(|v| v.abs() > 1.0)
        );
    }

    #[test]
    fn what_is_no_target_is_refused_by_name() {
        assert_eq!(
            names("blk.0.*"),
            Err("blk.0.ffn_up_exps.weight cannot be trained: experts get no adapters".to_string())
        );
        assert!(names("token_embd.weight").unwrap_err().contains("go over linear layers"));
        assert_eq!(names("blk.7.*"), Err("the model has no weight blk.7.*".to_string()));
        assert!(names("k").unwrap_err().contains("no weight k"));
        assert!(names("qq").unwrap_err().contains("none of all, attn"));
    }

    #[test]
    fn factors_are_uniform_and_depend_on_name_and_seed_only() {
        let targets: Targets = "attn".parse().expect("a group");
        let made = |targets: &Targets, seed| targets.factors(&weights(), 64, 2.0, seed).expect("factors");
        let all = made(&targets, 1);
        let bound = 1.0 / 8.0f32.sqrt();
        let a = &all[0].a;
        assert!(a.len() == 512 && a.iter().all(|v| v.abs() <= bound), "{a:?}");
        let mean = a.iter().sum::<f32>() / 512.0;
        let square = a.iter().map(|v| v * v).sum::<f32>() / 512.0;
        assert!(mean.abs() < 0.03 && (square / (bound * bound / 3.0) - 1.0).abs() < 0.15, "{mean} {square}");
        assert!(all[0].b.iter().all(|v| *v == 0.0) && all[0].a != all[1].a);
        assert_ne!(made(&targets, 2)[0].a, all[0].a);
        assert_eq!(made(&"blk.1.attn_q.weight".parse().expect("a name"), 1)[0], all[2]);
    }
}
