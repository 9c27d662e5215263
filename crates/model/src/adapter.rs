//! LoRA adapters: low-rank additions to a model's linear layers. They stay beside the weights and
//! are never merged into them.

mod applied;
mod config;
mod digest;
mod error;
mod ggml;
mod peft;

pub(crate) use applied::{Adapted, Factors, fit};
pub use applied::{Adapter, Applied};
pub use error::AdapterError;

use crate::error::Error;
use gguf::{GgmlType, Gguf, Source};
use kernels::{LowRank, TensorBytes, Weight, Weights};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The linear layers that adapters may change: our names and PEFT's.
const LINEARS: [(&str, &str); 7] = [
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

/// The names of [`LINEARS`], for messages.
fn names() -> String {
    LINEARS.map(|(ours, _)| ours).join(", ")
}

/// The number of a layer; `None` for other spellings, such as leading zeros.
fn layer(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n: &u32| n.to_string() == text)
}

/// The two factors of the product B A.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Side {
    A,
    B,
}

/// One factor, as stored in its file.
struct Factor {
    name: String,
    /// The model's tensor to which the product is added.
    target: String,
    side: Side,
    ty: GgmlType,
    rows: u32,
    cols: u32,
    bytes: TensorBytes,
    /// Alpha divided by the rank or by its square root.
    scale: f32,
}

impl Factor {
    fn new(name: String, target: String, side: Side, ty: GgmlType, shape: [u64; 2], bytes: TensorBytes) -> Result<Self, AdapterError> {
        let [rows, cols] = shape.map(|n| u32::try_from(n).unwrap_or(0));
        if rows == 0 || cols == 0 {
            return Err(AdapterError::Dimensions { name, found: shape.to_vec() });
        }
        Ok(Self { name, target, side, ty, rows, cols, bytes, scale: 1.0 })
    }

    fn rank(&self) -> u32 {
        if self.side == Side::A { self.rows } else { self.cols }
    }

    fn expect(&self, expected: [u32; 2], wanted: &'static str) -> Result<(), AdapterError> {
        let found = [self.rows, self.cols];
        if found == expected {
            return Ok(());
        }
        Err(AdapterError::Shape { name: self.name.clone(), expected, found, wanted })
    }

    fn load(&self, into: &mut Weights) -> Result<Weight, kernels::Error> {
        into.matrix(&self.name, self.ty, self.rows, self.cols, &self.bytes)
    }
}

/// The two factors for one tensor, with equal ranks.
struct Pair {
    a: Factor,
    b: Factor,
}

/// Pairs the factors by target. A factor without a partner is an error.
fn pair_up(factors: Vec<Factor>) -> Result<Vec<Pair>, AdapterError> {
    let mut sides: BTreeMap<String, [Option<Factor>; 2]> = BTreeMap::new();
    for factor in factors {
        let place = &mut sides.entry(factor.target.clone()).or_default()[factor.side as usize];
        if place.is_some() {
            return Err(AdapterError::Duplicate { name: factor.name, target: factor.target });
        }
        *place = Some(factor);
    }
    if sides.is_empty() {
        return Err(AdapterError::Empty);
    }
    let pair = |sides: [Option<Factor>; 2]| match sides {
        [Some(a), Some(b)] => {
            let pair = Pair { a, b };
            pair.b.expect([pair.b.rows, pair.a.rows], "but its partner requires").map(|()| pair)
        }
        [Some(Factor { name, target, .. }), None] => Err(AdapterError::Partner { name, missing: "B", target }),
        [None, Some(Factor { name, target, .. })] => Err(AdapterError::Partner { name, missing: "A", target }),
        [None, None] => unreachable!("an entry is made for a factor"),
    };
    sides.into_values().map(pair).collect()
}

/// The factors B A of one weight [N, K], which becomes W + scale B A.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorPair {
    /// The name of the weight in the model's file.
    pub target: String,
    pub rank: u32,
    /// Alpha divided by the rank or by its square root.
    pub scale: f32,
    /// [rank, K], row by row.
    pub a: Vec<f32>,
    /// [N, rank], row by row.
    pub b: Vec<f32>,
}

/// The module of transformers that a weight of ours belongs to, where `prefix` is the text model's:
/// `model.layers.0.self_attn.q_proj` for `blk.0.attn_q.weight`. `None` for a weight that takes no
/// factors.
#[must_use]
pub fn peft_module(prefix: &str, target: &str) -> Option<String> {
    let (layer, ours) = target.strip_prefix("blk.")?.strip_suffix(".weight")?.split_once('.')?;
    let (_, theirs) = LINEARS.iter().find(|(known, _)| *known == ours)?;
    Some(format!("{prefix}.layers.{layer}.{theirs}"))
}

/// The name of a tensor of ours in files of PEFT and of transformers: of a factor
/// (`blk.0.attn_q.weight.lora_a`), or of a weight of this architecture. `None` for a tensor that
/// has no such name.
#[must_use]
pub fn peft_name(architecture: &str, name: &str) -> Option<String> {
    let module = |tensor: &str| {
        let (layer, rest) = tensor.strip_prefix("blk.")?.split_once('.')?;
        let (ours, kind) = rest.rsplit_once('.')?;
        let gemma = architecture.starts_with("gemma");
        let norm = || match ours {
            "attn_norm" => Some("input_layernorm"),
            "ffn_norm" if gemma => Some("pre_feedforward_layernorm"),
            "ffn_norm" => Some("post_attention_layernorm"),
            "post_attention_norm" if gemma => Some("post_attention_layernorm"),
            "post_ffw_norm" if gemma => Some("post_feedforward_layernorm"),
            "attn_q_norm" => Some("self_attn.q_norm"),
            "attn_k_norm" => Some("self_attn.k_norm"),
            _ => None,
        };
        let theirs = LINEARS.iter().find(|(known, _)| *known == ours).map(|(_, theirs)| *theirs).or_else(norm)?;
        Some(format!("model.layers.{layer}.{theirs}.{kind}"))
    };
    for (ours, theirs) in [(".lora_a", "lora_A"), (".lora_b", "lora_B")] {
        if let Some(target) = name.strip_suffix(ours) {
            return Some(format!("base_model.model.{}.{theirs}.weight", peft_module("model", target)?));
        }
    }
    match name {
        "token_embd.weight" => Some("model.embed_tokens.weight".to_string()),
        "output_norm.weight" => Some("model.norm.weight".to_string()),
        "output.weight" => Some("lm_head.weight".to_string()),
        _ => module(name),
    }
}

/// An opened adapter. Its container, names and ranks are checked; no factor is loaded yet.
pub struct AdapterFile {
    path: Option<PathBuf>,
    /// `None` in PEFT's form, which does not state it.
    architecture: Option<String>,
    pairs: Vec<Pair>,
}

impl AdapterFile {
    /// Opens an adapter: a GGUF file; PEFT's folder with `adapter_config.json` and
    /// `adapter_model.safetensors`; or a safetensors file with the config beside it.
    ///
    /// # Errors
    /// [`AdapterError::In`] with the path and the reason.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, AdapterError> {
        let path = path.as_ref();
        let opened = Self::open_any(path).map_err(|error| match error {
            // The message already names the file.
            AdapterError::File(gguf::Error::InFile { .. }) => error,
            error => error.at(path),
        })?;
        Ok(Self { path: Some(path.to_path_buf()), ..opened })
    }

    fn open_any(path: &Path) -> Result<Self, AdapterError> {
        let file = if path.is_dir() { path.join("adapter_model.safetensors") } else { path.to_path_buf() };
        let source = gguf::FileSource::open(&file)?;
        let mut magic = [0; 4];
        if source.len_bytes() >= 4 && source.read_at(0, &mut magic).is_ok() && magic == *b"GGUF" {
            return Self::from_gguf(Gguf::open_with(file, gguf::OpenOptions { mmap: false })?);
        }
        let mut header = [0; 9];
        if source.len_bytes() < 9 || source.read_at(0, &mut header).is_ok() && header[8] != b'{' {
            return Err(AdapterError::Header { reason: "its header is not a JSON object".to_string() });
        }
        let config = file.with_file_name("adapter_config.json");
        Self::from_peft(&read_config(&config).map_err(|error| error.at(config))?, Box::new(source))
    }

    /// Takes an open file in llama.cpp's form.
    ///
    /// # Errors
    /// The reason why the file is refused.
    pub fn from_gguf(file: Gguf) -> Result<Self, AdapterError> {
        let (architecture, pairs) = ggml::read(file)?;
        Ok(Self { path: None, architecture: Some(architecture), pairs })
    }

    /// Takes the text of `adapter_config.json` and its safetensors file.
    ///
    /// # Errors
    /// The reason why the files are refused.
    pub fn from_peft(config: &str, tensors: Box<dyn Source>) -> Result<Self, AdapterError> {
        Ok(Self { path: None, architecture: None, pairs: peft::read(config, tensors)? })
    }

    /// The factors of every pair, in f32, by the name of the weight that they are added to.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn factors(&self) -> Result<Vec<FactorPair>, Error> {
        let values = |factor: &Factor| -> Result<Vec<f32>, Error> {
            let (rows, cols) = (factor.rows as usize, factor.cols as usize);
            let mut bytes = vec![0; rows * factor.ty.row_bytes(cols).unwrap_or(0)];
            factor.bytes.read(0, &mut bytes)?;
            let mut all = vec![0.0; rows * cols];
            let matrix = cpu_ref::Rows::new(factor.ty, cols, &bytes);
            all.chunks_exact_mut(cols).enumerate().for_each(|(n, row)| matrix.dequantize_row(n, row));
            Ok(all)
        };
        let pair = |Pair { a, b }: &Pair| {
            Ok(FactorPair { target: a.target.clone(), rank: a.rank(), scale: a.scale, a: values(a)?, b: values(b)? })
        };
        self.pairs.iter().map(pair).collect()
    }

    /// The digest by which a snapshot identifies the adapter.
    pub(crate) fn digest(&self) -> Result<[u8; 32], Error> {
        digest::digest(&self.pairs)
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Adds the file's path to an error.
    fn locate(&self, error: AdapterError) -> Error {
        match &self.path {
            Some(path) => error.at(path).into(),
            None => error.into(),
        }
    }

    /// Checks every pair against the weights of a model and lists it in the separate set `into`.
    pub(crate) fn load(&self, base: &Weights, architecture: &'static str, mut into: Weights) -> Result<Factors, Error> {
        if let Some(found) = self.architecture.as_ref().filter(|name| *name != architecture) {
            return Err(self.locate(AdapterError::Architecture { expected: architecture.to_string(), found: found.clone() }));
        }
        let targets: HashMap<&str, Weight> = base.iter().collect();
        let mut pairs = vec![];
        for Pair { a, b } in &self.pairs {
            let (name, target) = (a.name.clone(), a.target.clone());
            let Some(&weight) = targets.get(target.as_str()) else {
                return Err(self.locate(AdapterError::NoTarget { name, target, architecture }));
            };
            let fits = |factor: &Factor, shape| factor.expect(shape, "but this model requires").map_err(|error| self.locate(error));
            fits(a, [a.rows, weight.cols])?;
            fits(b, [weight.rows, b.cols])?;
            pairs.push((weight, LowRank { a: a.load(&mut into)?, b: b.load(&mut into)?, scale: a.scale }));
        }
        Ok(Factors { weights: into, pairs })
    }
}

fn read_config(path: &Path) -> Result<String, AdapterError> {
    use std::io::Read as _;
    /// Far more than the patterns of a real model need.
    const MAX_BYTES: u64 = 256 << 10;
    let read = || {
        let mut text = String::new();
        std::fs::File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|error| AdapterError::Read { what: "the configuration that belongs to safetensors", error })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(AdapterError::Config { reason: format!("longer than {MAX_BYTES} bytes") });
    }
    Ok(text)
}
