//! Finds models and describes each one.

use super::quantization;
use crate::exit::one_line;
use crate::hub;
use crate::open::DEFAULT;
use crate::pull;
use gguf::Gguf;
use kernels::Executor;
use model::ollama::{OllamaError, Stores};
use model::{Error, ModelFile, SessionOptions};
use std::path::{Path, PathBuf};

/// The depth to which subfolders are searched, and the largest number of files.
const DEPTH: usize = 4;
const MAX_FILES: usize = 10_000;

/// A place where a model is.
pub enum Place {
    Default,
    /// The name that `weft run` takes, and the model's file.
    Ollama {
        name: String,
        found: Result<PathBuf, OllamaError>,
    },
    /// A model in the hub's cache, by the name that `weft run` takes.
    Hub {
        name: String,
        path: PathBuf,
    },
    File(PathBuf),
}

/// The description of a model.
pub struct Model {
    pub name: String,
    pub source: &'static str,
    pub path: Option<PathBuf>,
    pub bytes: u64,
    pub architecture: Option<String>,
    pub quantization: Option<String>,
    pub fit: Fit,
}

/// Whether a session fits into the memory of the device.
pub enum Fit {
    Yes { needed: u64 },
    No { needed: u64, available: u64 },
    Unknown { needed: u64 },
    CannotRun(String),
}

/// All models: the default model, Ollama's models, those in the hub's cache, and the files of a
/// folder.
pub fn places(folder: Option<&Path>) -> Vec<Place> {
    let mut all = vec![Place::Default];
    for listed in Stores::from_env().list() {
        let found = listed.entry.map(|entry| entry.model.path);
        all.push(Place::Ollama { name: listed.name.to_string(), found });
    }
    for model in hub::models() {
        all.push(Place::Hub { name: pull::told(&model.name), path: model.file() });
    }
    let mut files = vec![];
    folder.into_iter().for_each(|folder| collect(folder, DEPTH, &mut files));
    files.sort();
    all.extend(files.into_iter().map(Place::File));
    all
}

/// Collects the models under a folder: GGUF files but those that encode images for a model. Of a
/// split file it takes only the first part.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().to_lowercase());
        if files.len() == MAX_FILES || name.starts_with('.') {
            continue;
        }
        if path.is_dir() && depth > 0 {
            collect(&path, depth - 1, files);
        } else if name.ends_with(".gguf") && !name.contains("mmproj") && !later_part(&name) && path.is_file() {
            files.push(path);
        }
    }
}

/// Whether a name is the second or a later part of a split file: `x-00002-of-00003.gguf`.
fn later_part(name: &str) -> bool {
    let number = |text: &str| (text.len() == 5).then(|| text.parse::<u32>().ok()).flatten();
    let parts = name.strip_suffix(".gguf").and_then(|stem| stem.rsplit_once("-of-"));
    let number_of = parts.and_then(|(before, count)| Some((number(before.rsplit_once('-')?.1)?, number(count)?)));
    number_of.is_some_and(|(part, _)| part > 1)
}

impl Model {
    /// Whether the file is a model, not an encoder of images for one.
    pub fn is_model(&self) -> bool {
        self.architecture.as_deref() != Some("clip")
    }

    /// Describes a model from its header only.
    pub fn of(place: &Place, executor: &Executor, options: &SessionOptions) -> Self {
        match place {
            Place::Default => Self::opened(
                crate::open::NAME_OF_DEFAULT.to_string(),
                "weft",
                None,
                Ok(Gguf::from_bytes(DEFAULT)),
                executor,
                options,
            ),
            Place::Ollama { name, found: Ok(path) } => {
                Self::opened(name.clone(), "ollama", Some(path), Ok(Gguf::open(path)), executor, options)
            }
            Place::Ollama { name, found: Err(error) } => {
                Self::opened(name.clone(), "ollama", None, Err(error.to_string()), executor, options)
            }
            Place::Hub { name, path } => {
                Self::opened(name.clone(), "hub", Some(path), Ok(Gguf::open(path)), executor, options)
            }
            Place::File(path) => {
                Self::opened(path.display().to_string(), "folder", Some(path), Ok(Gguf::open(path)), executor, options)
            }
        }
    }

    fn opened(
        name: String,
        source: &'static str,
        path: Option<&PathBuf>,
        file: Result<gguf::Result<Gguf>, String>,
        executor: &Executor,
        options: &SessionOptions,
    ) -> Self {
        let mut model = Self {
            name,
            source,
            path: path.cloned(),
            bytes: 0,
            architecture: None,
            quantization: None,
            fit: Fit::CannotRun(String::new()),
        };
        // The printed line begins with the name, so the reason need not repeat the path.
        let short = |reason: String| {
            let reason = path.map_or(reason.clone(), |path| reason.replace(&format!("{}: ", path.display()), ""));
            Fit::CannotRun(one_line(&reason))
        };
        let file = match file {
            Err(reason) => return Self { fit: short(reason), ..model },
            Ok(Err(error)) => {
                return Self {
                    fit: short(error.to_string()),
                    bytes: path.and_then(|p| p.metadata().ok()).map_or(0, |m| m.len()),
                    ..model
                };
            }
            Ok(Ok(file)) => file,
        };
        model.bytes = file.source().len_bytes();
        model.architecture = file.architecture().ok().map(str::to_string);
        model.quantization = quantization::name(&file);
        let fit = fit(file, executor, options);
        Self { fit: fit.unwrap_or_else(|error| short(error.to_string())), ..model }
    }
}

fn fit(file: Gguf, executor: &Executor, options: &SessionOptions) -> Result<Fit, Error> {
    let checked = ModelFile::new(file)?.check(executor)?;
    // A model with a shorter context than asked for is checked at its full context.
    let most = checked.summary().context_length;
    let options = options.clone().context(options.context.map(|context| context.min(most)));
    let needed = checked.needs(&options)?.total().0;
    Ok(match options.memory_bytes.or_else(|| checked.available_bytes()) {
        Some(available) if needed > available => Fit::No { needed, available },
        Some(_) => Fit::Yes { needed },
        None => Fit::Unknown { needed },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_fits_into_its_needs_and_not_into_a_byte_less() {
        let fit = |memory_bytes| {
            fit(
                Gguf::from_bytes(DEFAULT).unwrap(),
                &Executor::Cpu,
                &SessionOptions::default().memory_bytes(memory_bytes),
            )
        };
        let Fit::Yes { needed } = fit(Some(u64::MAX)).unwrap() else { panic!("it fits") };
        assert!(matches!(fit(Some(needed)), Ok(Fit::Yes { .. })));
        assert!(matches!(fit(Some(needed - 1)), Ok(Fit::No { available, .. }) if available == needed - 1));
    }

    #[test]
    fn of_a_split_file_the_first_part_is_listed() {
        assert!(!later_part("x.gguf") && !later_part("x-00001-of-00003.gguf") && !later_part("x-2-of-3.gguf"));
        assert!(later_part("x-00002-of-00003.gguf") && later_part("x-00003-of-00003.gguf"));
    }

    #[test]
    fn folders_are_searched_but_not_hidden_ones_nor_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c/d");
        std::fs::create_dir_all(deep.join("e")).unwrap();
        std::fs::create_dir_all(folder.path().join(".git")).unwrap();
        for path in [
            "x.gguf",
            "x.txt",
            "mmproj-x.gguf",
            "a/x-mmproj-F16.gguf",
            ".git/y.gguf",
            "a/B.GGUF",
            "a/b/c/d/z.gguf",
            "a/b/c/d/e/too-deep.gguf",
        ] {
            std::fs::write(folder.path().join(path), "").unwrap();
        }
        let mut files = vec![];
        collect(folder.path(), DEPTH, &mut files);
        files.sort();
        let names: Vec<_> =
            files.iter().map(|path| path.strip_prefix(folder.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a/B.GGUF", "a/b/c/d/z.gguf", "x.gguf"]);
    }
}
