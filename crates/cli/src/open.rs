//! Finds and opens the model that the user names, and loads it onto an executor.

use crate::args::Source;
use crate::executor::Choice;
use crate::exit::note;
use crate::hub::{self, Cached};
use crate::inspect::verify::verify;
use crate::known;
use crate::lora::Adapters;
use crate::progress::Bar;
use crate::pull::hub_name;
use anyhow::{Context, Result, anyhow};
use gguf::{Gguf, OpenOptions};
use kernels::{Executor, Preparing};
use model::ollama::{Entry, Name, OllamaError, Stores};
use model::{AdapterFile, Applied, Checked, Model, ModelFile, Session, SessionOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The default model inside the binary: Qwen3 architecture, trained on a small invented world
/// (`assets/MODEL_CARD.md`).
pub static DEFAULT: &[u8] = include_bytes!("../assets/default.gguf");

/// The name of the default model, which every command takes.
pub const NAME_OF_DEFAULT: &str = "default";

/// The number of similar file names that an error lists.
const LISTED: usize = 3;

impl Source {
    /// The name of the model in messages and reports.
    pub fn name(&self) -> String {
        let other = self.model.as_ref().filter(|_| !self.is_default());
        other.map_or_else(|| "the default model".to_string(), |path| path.display().to_string())
    }

    /// Whether the model is the one inside the binary.
    pub fn is_default(&self) -> bool {
        self.model.as_ref().is_none_or(|path| path.as_os_str() == NAME_OF_DEFAULT && !path.exists())
    }

    /// Finds the model: an existing file first, else a model in Ollama's store or on the hub. A
    /// model of the hub that is not here is fetched.
    pub fn find(&self) -> Result<Found> {
        let Some(path) = &self.model else { return Ok(Found::Default) };
        match std::fs::metadata(path) {
            Err(_) if path.as_os_str() == NAME_OF_DEFAULT => Ok(Found::Default),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
                ) =>
            {
                named(path)
            }
            Ok(metadata) if metadata.is_dir() => {
                if path.to_str().is_some_and(|text| hub_name(text).is_some()) {
                    return named(path);
                }
                if let Ok(found) = in_ollama(path) {
                    return Ok(found);
                }
                let hint = similar(path, "").map_or_else(|| "has none".to_string(), |names| format!("has {names}"));
                Err(anyhow!("{} is a directory; pass a .gguf file (it {hint})", path.display()))
            }
            _ => Ok(Found::File(path.clone())),
        }
    }

    /// Opens the GGUF file.
    pub fn gguf(&self) -> Result<Gguf> {
        let path = match self.find()? {
            Found::Default => return Ok(Gguf::from_bytes(DEFAULT)?),
            Found::File(path) => path,
            Found::Ollama(entry) => entry.model.path,
            Found::Hub(model) => model.file(),
        };
        Ok(Gguf::open_with(path, OpenOptions::default().mmap(self.mapping.maps()))?)
    }

    /// Reads the whole model; returns one line for every damaged tensor.
    ///
    /// # Errors
    /// A digest differs from Ollama's or the hub's, or the file cannot be read.
    pub fn damage(&self, file: &Gguf) -> Result<Vec<String>> {
        match self.find()? {
            Found::Ollama(entry) => {
                let bar = Bar::bytes(format!("hashing {}", entry.name));
                entry.verify(&|progress| bar.show(progress))?;
            }
            Found::Hub(model) => {
                let bar = Bar::bytes(format!("hashing {}", model.name));
                model.verify(&|done, total| bar.set(done, total))?;
            }
            Found::Default | Found::File(_) => {}
        }
        verify(file)
    }

    /// Opens the file as a model. A model of Ollama gets Ollama's chat template if its file has
    /// none, and a note about the settings that do not apply.
    pub fn model_file(&self) -> Result<ModelFile> {
        let file = self.named(ModelFile::new(self.gguf()?))?;
        Ok(if let Found::Ollama(entry) = self.find()? { entry.fit(file) } else { file })
    }

    /// Chooses the device, checks that the file can run such a session with its adapters, and loads
    /// the weights. Adapters from Ollama come before the given ones. With `generate`, the pipelines
    /// for generation are built while the weights load.
    pub fn load(
        &self,
        file: ModelFile,
        device: &Choice,
        options: &SessionOptions,
        adapters: &Adapters,
        generate: bool,
    ) -> Result<Loaded> {
        let opened = self.adapters(adapters)?;
        self.say_notes(&file);
        let executor = self.located(device.open(&file, options))?;
        let mut checked = self.named(file.check(&executor))?;
        for (adapter, scale) in &opened {
            let said = checked.adapt(adapter, *scale)?;
            crate::lora::say(adapter.path().unwrap_or(Path::new("")), said.as_ref());
        }
        self.named(checked.fit(options))?;
        self.verify_if_asked(&file)?;
        let preparing = if generate { self.named(checked.prepare(options))? } else { Preparing::default() };
        let began = Instant::now();
        let model = self.weights(file, executor)?;
        let load = |(adapter, scale): &(_, f32)| Ok(Applied { adapter: model.adapter(adapter)?, scale: *scale });
        let adapters = opened.iter().map(load).collect::<Result<_>>()?;
        Ok(Loaded { model, checked, adapters, weights: began.elapsed(), preparing })
    }

    /// Opens the adapters that Ollama has for the model, then the given ones.
    pub fn adapters(&self, given: &Adapters) -> Result<Vec<(AdapterFile, f32)>> {
        let mut opened = match self.find()? {
            Found::Ollama(entry) => {
                entry.adapters.iter().map(|blob| Ok((AdapterFile::open(&blob.path)?, 1.0))).collect::<Result<_>>()?
            }
            Found::Default | Found::File(_) | Found::Hub(_) => vec![],
        };
        opened.extend(given.open()?);
        Ok(opened)
    }

    /// Prints what was assumed to open the file.
    pub fn say_notes(&self, file: &ModelFile) {
        file.notes().iter().for_each(|said| note(&format!("{}: {said}", self.name())));
    }

    /// Prints what was assumed to open the file of a base that takes new adapters. If Ollama
    /// applies an adapter to this model, a note says that the adapter is no part of the base.
    pub fn say_notes_of_base(&self, file: &ModelFile) -> Result<()> {
        self.say_notes(file);
        if let Found::Ollama(entry) = self.find()?
            && !entry.adapters.is_empty()
        {
            note(&format!("{}: the adapter that Ollama applies to this model is no part of the base", self.name()));
        }
        Ok(())
    }

    /// Reads the whole file first and checks it, if --verify is given.
    pub fn verify_if_asked(&self, file: &ModelFile) -> Result<()> {
        match self.verify.then(|| self.damage(file.file())).transpose()?.as_deref() {
            Some([first, ..]) => Err(anyhow!("{}: {first}", self.name())),
            _ => Ok(()),
        }
    }

    /// Loads the weights onto an executor, with progress.
    pub fn weights(&self, file: ModelFile, executor: Executor) -> Result<Model> {
        let bar = Bar::bytes(format!("loading onto {}", executor.name()));
        self.named(file.on_with(executor, &|progress| bar.show(progress)))
    }

    /// Adds the file's name to an error that does not mention it.
    pub fn named<T>(&self, result: Result<T, model::Error>) -> Result<T> {
        self.located(result.map_err(anyhow::Error::new))
    }

    /// Adds the file's name to an error of the model that does not mention it. All other errors
    /// stay unchanged.
    pub fn located<T>(&self, result: Result<T>) -> Result<T> {
        let name = self.name();
        result.map_err(|error| {
            if !error.is::<model::Error>() || error.to_string().contains(&name) { error } else { error.context(name) }
        })
    }
}

/// The place where a model was found.
pub enum Found {
    /// The model inside the binary.
    Default,
    File(PathBuf),
    Ollama(Box<Entry>),
    /// In the hub's cache.
    Hub(Cached),
}

/// Finds a model by its name, where no such file exists.
fn named(path: &Path) -> Result<Found> {
    let text = path.to_str().unwrap_or_default();
    let of_ollama = || in_ollama(path);
    match hub_name(text) {
        // Ollama has models of the hub under their address.
        Some(Ok(_)) if !text.starts_with("hf:") && of_ollama().is_ok() => of_ollama(),
        Some(name) => Ok(Found::Hub(hub::find(&name.map_err(|reason| anyhow!(reason))?)?)),
        None => of_ollama(),
    }
}

/// Finds a model in Ollama's store by its name.
fn in_ollama(path: &Path) -> Result<Found> {
    let text = path.to_str().unwrap_or_default();
    let is_path = text.starts_with(['.', '/', '~']) || text.to_lowercase().ends_with(".gguf");
    let (stores, explicit) = (Stores::from_env(), text.contains(':'));
    if is_path || !(explicit || stores.any()) {
        return Err(missing(path));
    }
    match text.parse::<Name>().and_then(|name| stores.find(&name)) {
        Ok(entry) => Ok(Found::Ollama(Box::new(entry))),
        Err(OllamaError::Name { .. }) => Err(missing(path)),
        Err(error @ OllamaError::NotFound { .. }) if !explicit => {
            Err(anyhow!("{}; and {error}; {}", missing(path), way_to(text)))
        }
        Err(error @ OllamaError::NotFound { .. }) => Err(anyhow!("{error}; {}", way_to(text))),
        Err(error) => Err(error.into()),
    }
}

/// How to get a model that Ollama's store lacks.
fn way_to(name: &str) -> String {
    let name = name.strip_prefix("ollama://").unwrap_or(name);
    let fetch = format!("`ollama pull {name}` fetches it there");
    let tagged = if name.contains(':') { name.to_string() } else { format!("{name}:latest") };
    match known::of_ollama(&tagged) {
        Some(known) => format!("{fetch}, `weft run {}` the same model from the hub ({})", known.name, known.address),
        None => fetch,
    }
}

/// A loaded model with its checked file and the adapters for its sessions.
pub struct Loaded {
    pub model: Model,
    pub checked: Checked,
    pub adapters: Vec<Applied>,
    /// The time that loading the weights took.
    pub weights: Duration,
    /// Builds the pipelines of the first session in the background until it is dropped.
    pub preparing: Preparing,
}

impl Loaded {
    /// Makes a session with the adapters applied.
    pub fn session(&self, options: SessionOptions) -> Result<Session, model::Error> {
        let mut session = self.model.session(options)?;
        session.set_adapters(self.adapters.clone())?;
        Ok(session)
    }
}

/// The error for a path without a file. It lists similar files of the same folder, and similar
/// names of models.
fn missing(path: &Path) -> anyhow::Error {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let hint = match (folder.is_dir(), similar(folder, &name)) {
        (false, _) => format!("there is no folder {}", folder.display()),
        (true, None) => format!("{} has no .gguf files", folder.display()),
        (true, Some(names)) => format!("{} has {names}", folder.display()),
    };
    let rest = match (name.contains(char::is_whitespace), near_names(&name)) {
        (true, _) => {
            return anyhow!(
                "no model is named \"{name}\"; weft run -p '..' asks the default model, and weft run MODEL '..' another one"
            );
        }
        (false, _) if is_repository(path) => format!("; on the hub it is hf:{}", path.display()),
        (false, names) if names.is_empty() => String::new(),
        (false, names) => format!("; near names of models are {}", names.join(", ")),
    };
    anyhow!("{}: no such file; {hint}{rest}", path.display())
}

/// Whether a path without a folder here reads as a repository of the hub, OWNER/REPO.
fn is_repository(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    let is_here = path.parent().is_some_and(Path::is_dir) || text.to_lowercase().ends_with(".gguf");
    !is_here && text.contains('/') && matches!(hub_name(&format!("hf:{text}")), Some(Ok(_)))
}

/// The names that commands take and that are similar to a file name: known models, Ollama's, and
/// those in the hub's cache.
fn near_names(file: &str) -> Vec<String> {
    let stem = file.strip_suffix(".gguf").unwrap_or(file);
    let known = known::all().iter().map(|known| known.name.clone());
    let ollama = Stores::from_env().list().into_iter().map(|listed| listed.name.to_string());
    let cached = hub::models().into_iter().map(|model| model.name.to_string());
    known::nearest(stem, known.chain(ollama).chain(cached))
}

/// Lists the `.gguf` files of a folder: first the most similar name, or all by name if none is
/// similar.
fn similar(folder: &Path, name: &str) -> Option<String> {
    let is_file = |entry: &std::fs::DirEntry| entry.path().is_file();
    let entries = std::fs::read_dir(folder).ok()?.filter_map(Result::ok).filter(is_file);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.to_lowercase().ends_with(".gguf"));
    names.sort();
    let near = known::near(name, names.iter().cloned());
    names.sort_by_key(|name| near.iter().position(|near| near == name).unwrap_or(near.len()));
    let more = names.len().saturating_sub(LISTED);
    names.truncate(LISTED);
    let list = names.join(", ");
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(list),
        (false, more) => Some(format!("{list} and {more} more")),
    }
}

/// Parses token ids: from the JSON array in `@FILE`, or from the text itself.
pub fn tokens(list: &str) -> Result<Vec<u32>> {
    let Some(path) = list.strip_prefix('@') else { return crate::text::ids(list) };
    let text = crate::text::file(Path::new(path))?;
    serde_json::from_str(&text).with_context(|| format!("{path} is not a JSON array of token ids"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_model_opens() {
        let source = Source { model: None, mapping: crate::args::Mapping::default(), verify: false };
        let file = source.model_file().unwrap();
        let checked = file.check(&Executor::Cpu).unwrap();
        assert_eq!(checked.summary().architecture, "qwen3");
        assert!(DEFAULT.len() <= 8 << 20, "{} bytes ship in the binary", DEFAULT.len());
    }

    #[test]
    fn a_missing_file_names_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["aaa.gguf", "qwen3-8b.gguf", "gemma.gguf", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("qwen3-8b-folder.gguf")).unwrap();
        let error = missing(&folder.path().join("qwen3-8B")).to_string();
        assert!(
            error.contains("has qwen3-8b.gguf, aaa.gguf, gemma.gguf; near names of models are qwen3-8b,"),
            "{error}"
        );
        let error = missing(&folder.path().join("zzz.gguf")).to_string();
        assert!(error.ends_with("has aaa.gguf, gemma.gguf, qwen3-8b.gguf"), "{error}");
        let error = missing(&folder.path().join("no/such.gguf")).to_string();
        assert!(error.contains("there is no folder"), "{error}");
        let error = missing(Path::new("Qwen/Qwen3-8B-GGUF:Q8_0")).to_string();
        assert!(error.ends_with("on the hub it is hf:Qwen/Qwen3-8B-GGUF:Q8_0"), "{error}");
        let error = missing(Path::new("What is 3 + 4?")).to_string();
        assert!(error.starts_with("no model is named") && error.contains("weft run -p"), "{error}");
    }
}
