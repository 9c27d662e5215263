//! LoRA adapters: low-rank additions to a model's linear layers, embedding and head. They stay
//! beside the weights.

mod applied;
mod config;
mod container;
mod digest;
mod error;
mod factor;
mod features;
mod ggml;
mod names;
mod peft;
mod seed;

pub(crate) use applied::{Adapted, Added, Factors, fit};
pub use applied::{Adapter, Applied};
pub use error::AdapterError;
pub use factor::{FactorPair, transpose};
pub use names::{EMBEDDING, OUTPUT, peft_module, peft_name};

use crate::arch::Summary;
use crate::error::Error;
use crate::left_out::LeftOut;
use container::Container;
use factor::{BaseCopy, Contents, Factor, Pair, Side};
use gguf::{Directory, FileDirectory, Gguf, Source};
use kernels::{LowRank, Weight, Weights};
use names::{LINEARS, keys_of, layer, names};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

/// An opened adapter. Its container, names and ranks are checked; no factor is loaded yet.
pub struct AdapterFile {
    path: Option<PathBuf>,
    /// `None` in PEFT's form, which does not state it.
    architecture: Option<String>,
    contents: Contents,
}

/// The pairs of an adapter that change a model, the use of the weight that each changes, and what
/// is left out.
struct Fit<'a> {
    pairs: Vec<(&'a Pair, Weight, Added)>,
    left_out: LeftOut,
}

impl AdapterFile {
    /// Opens an adapter: a GGUF file; PEFT's folder with `adapter_config.json` and
    /// `adapter_model.safetensors`; a safetensors file with the config beside it; or a safetensors
    /// file of `rullama-lora-v0`, with tensors such as `lora.blk.0.q.A`, which needs no config.
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
        let file = match path.is_dir() {
            true => path.join(tensors_in(&FileDirectory::new(path))?),
            false => path.to_path_buf(),
        };
        let source = gguf::FileSource::open(&file)?;
        if magic(&source) == *b"GGUF" {
            return Self::from_gguf(Gguf::open(file)?);
        }
        let beside = FileDirectory::new(file.parent().unwrap_or(Path::new("")));
        Self::from_any(Box::new(source), &beside)
    }

    /// Reads an adapter of a folder that need not be in the file system: of its file `name`, or
    /// without a name PEFT's `adapter_model.safetensors`. The configuration is beside it.
    ///
    /// # Errors
    /// The reason why the files are refused.
    pub fn read(folder: &dyn Directory, name: Option<&str>) -> Result<Self, AdapterError> {
        let name = name.map_or_else(|| tensors_in(folder), Ok)?;
        let source = folder.open(name).map_err(|error| AdapterError::Read { what: "the factors", error });
        let read = |source: Box<dyn Source>| Self::from_any(source, folder);
        source.and_then(read).map_err(|error| error.at(folder.locate(name)))
    }

    /// Takes a file in any form, and the configuration of its folder if its form has one.
    fn from_any(source: Box<dyn Source>, folder: &dyn Directory) -> Result<Self, AdapterError> {
        match &magic(&*source) {
            b"GGUF" => return Self::from_gguf(Gguf::from_source(source)?),
            b"PK\x03\x04" => return Err(AdapterError::Pickle),
            _ => {}
        }
        let mut header = [0; 9];
        if source.len_bytes() < 9 || source.read_at(0, &mut header).is_ok() && header[8] != b'{' {
            return Err(AdapterError::Header { reason: "its header is not a JSON object".to_string() });
        }
        Self::from_safetensors(source, || read_config(folder).map_err(|error| error.at(folder.locate(CONFIG))))
    }

    /// Takes an open file in llama.cpp's form.
    ///
    /// # Errors
    /// The reason why the file is refused.
    pub fn from_gguf(file: Gguf) -> Result<Self, AdapterError> {
        let (architecture, contents) = ggml::read(file)?;
        Ok(Self { path: None, architecture: Some(architecture), contents })
    }

    /// Takes the text of `adapter_config.json` and its safetensors file. Tensors of
    /// `rullama-lora-v0` do not need the text.
    ///
    /// # Errors
    /// The reason why the files are refused.
    pub fn from_peft(config: &str, tensors: Box<dyn Source>) -> Result<Self, AdapterError> {
        Self::from_safetensors(tensors, || Ok(config.to_string()))
    }

    /// Takes a safetensors file, and the configuration if its form has one.
    fn from_safetensors(
        tensors: Box<dyn Source>,
        config: impl FnOnce() -> Result<String, AdapterError>,
    ) -> Result<Self, AdapterError> {
        let tensors = Container::read(tensors)?;
        let contents = match () {
            () if seed::is(&tensors) => seed::read(tensors)?,
            () if tensors.is_mlx() => return Err(AdapterError::Mlx),
            () => peft::read(&config()?, tensors)?,
        };
        Ok(Self { path: None, architecture: None, contents })
    }

    /// The factors of every pair for the text model, in f32, by the name of the weight that they
    /// are added to. [`Model::factors_of`](crate::Model::factors_of) gives the pairs that a model
    /// has a use for.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn factors(&self) -> Result<Vec<FactorPair>, Error> {
        self.contents.pairs.iter().map(Pair::values).collect()
    }

    /// The factors that change a model with these weights, and what is left out.
    pub(crate) fn factors_of(&self, base: &Weights, summary: &Summary) -> Result<(Vec<FactorPair>, LeftOut), Error> {
        let Fit { pairs, left_out } = self.fit(base, summary)?;
        let values: Result<_, Error> = pairs.into_iter().map(|(pair, ..)| pair.values()).collect();
        Ok((values?, left_out))
    }

    /// The digest by which a snapshot identifies the adapter.
    pub(crate) fn digest(&self) -> Result<[u8; 32], Error> {
        digest::digest(&self.contents.pairs)
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

    /// Checks every pair against the weights of a model and lists the pairs that change it in the
    /// separate set `into`.
    pub(crate) fn load(&self, base: &Weights, summary: &Summary, mut into: Weights) -> Result<Factors, Error> {
        let Fit { pairs, left_out } = self.fit(base, summary)?;
        let mut loaded = vec![];
        for (Pair { a, b }, weight, added) in pairs {
            loaded.push((weight, added, LowRank { a: a.load(&mut into)?, b: b.load(&mut into)?, scale: a.scale }));
        }
        Ok(Factors { weights: into, pairs: loaded, left_out })
    }

    /// Finds the weight of every pair, and checks the shapes.
    fn fit(&self, base: &Weights, summary: &Summary) -> Result<Fit<'_>, Error> {
        let architecture = summary.architecture;
        if let Some(found) = self.architecture.as_ref().filter(|name| *name != architecture) {
            return Err(
                self.locate(AdapterError::Architecture { expected: architecture.to_string(), found: found.clone() })
            );
        }
        let targets: HashMap<&str, Weight> = base.iter().collect();
        let tied = |target: &str| (target == OUTPUT).then_some(EMBEDDING);
        let find = |target: &str| targets.get(target).or_else(|| targets.get(tied(target)?)).copied();
        let mut fit = Fit { pairs: vec![], left_out: self.contents.left_out.clone() };
        for pair @ Pair { a, b } in &self.contents.pairs {
            let (name, target) = (a.name.clone(), a.target.clone());
            // A file may have the weights of these keys and values. The model does not use them.
            if keys_of(&target).is_some_and(|layer| summary.shares_keys(layer)) {
                fit.left_out.keys_and_values.push(target);
                continue;
            }
            let Some(weight) = find(&target) else {
                return Err(self.locate(AdapterError::NoTarget { name, target, architecture }));
            };
            let fits = |factor: &Factor, shape| {
                factor.expect(shape, "but this model requires").map_err(|error| self.locate(error))
            };
            fits(a, if a.is_transposed() { [weight.cols, a.cols] } else { [a.rows, weight.cols] })?;
            fits(b, [weight.rows, b.cols])?;
            fit.pairs.push((pair, weight, if target == EMBEDDING { Added::ToRows } else { Added::ToProducts }));
        }
        for BaseCopy { name, target, shape } in &self.contents.copies {
            let expected = find(target).map(|weight| [weight.rows, weight.cols]);
            if let Some(expected) = expected.filter(|expected| expected != shape) {
                let wanted = "a copy of a weight of the base, but this model's is";
                return Err(self.locate(AdapterError::Shape { name: name.clone(), expected, found: *shape, wanted }));
            }
            fit.left_out.copies.push(name.clone());
        }
        if fit.pairs.is_empty() {
            return Err(self.locate(AdapterError::NothingApplies { left_out: fit.left_out }));
        }
        Ok(fit)
    }
}

/// The first bytes of a file; zeros if it has fewer.
fn magic(source: &dyn Source) -> [u8; 4] {
    let mut magic = [0; 4];
    match source.len_bytes() >= 4 && source.read_at(0, &mut magic).is_ok() {
        true => magic,
        false => [0; 4],
    }
}

/// The configuration in PEFT's folder.
const CONFIG: &str = "adapter_config.json";

/// The file of factors in PEFT's folder.
fn tensors_in(folder: &dyn Directory) -> Result<&'static str, AdapterError> {
    const TENSORS: &str = "adapter_model.safetensors";
    let has = |name: &str| folder.item(name).is_ok();
    match () {
        () if has(TENSORS) => Ok(TENSORS),
        () if has("adapters.safetensors") => Err(AdapterError::Mlx),
        () if has("adapter_model.bin") => Err(AdapterError::Pickle),
        () => Ok(TENSORS),
    }
}

fn read_config(folder: &dyn Directory) -> Result<String, AdapterError> {
    /// Far more than the patterns of a real model need.
    const MAX_BYTES: u64 = 256 << 10;
    let text = folder.read(CONFIG, MAX_BYTES + 1).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
    });
    let text =
        text.map_err(|error| AdapterError::Read { what: "the configuration that belongs to safetensors", error })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(AdapterError::Config { reason: format!("longer than {MAX_BYTES} bytes") });
    }
    Ok(text)
}
