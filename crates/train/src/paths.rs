//! Functions that take paths, for native hosts. Each is a path-free function over a file: examples
//! and checkpoints are read where they are needed, and results are written whole or not at all.

use crate::adapter::{PeftOptions, ggml, write_peft};
use crate::checkpoint::{Facts, Restored};
use crate::data::{Data, DataOptions, Texts};
use crate::error::Error;
use crate::files::{captures_file, parameters_file};
use crate::gradients::CapturedRows;
use crate::merge::{Merged, merged, retrained};
use crate::parameters::Parameter;
use crate::rewrite::{Fallback, Writing};
use crate::trainer::Trainer;
use gguf::{FileDirectory, FileSource, GgmlType, Gguf, Progress, Source, atomic_write};
use kernels::block_on;
use model::{AdapterFile, FactorPair, ModelFile};
use std::io;
use std::path::{Path, PathBuf};

/// As [`write_peft`]. The folder is made if it does not exist.
///
/// # Errors
/// As [`write_peft`].
pub fn save_peft(folder: impl AsRef<Path>, factors: &[FactorPair], options: &PeftOptions) -> Result<(), Error> {
    let folder = folder.as_ref();
    write_peft(&FileDirectory::new(folder), factors, options).map_err(of(folder))
}

/// As [`write_gguf`](crate::write_gguf).
///
/// # Errors
/// As [`write_gguf`](crate::write_gguf).
pub fn save_gguf(path: impl AsRef<Path>, architecture: &str, factors: &[FactorPair]) -> Result<(), Error> {
    let path = path.as_ref();
    Ok(ggml::file(architecture, factors).map_err(of(path))?.save(path)?)
}

/// As [`write_parameters`](crate::write_parameters).
///
/// # Errors
/// As [`write_parameters`](crate::write_parameters).
pub fn save_parameters(path: &Path, architecture: &str, parameters: &[Parameter]) -> Result<(), Error> {
    let bytes = parameters_file(architecture, parameters).map_err(of(path))?;
    Ok(atomic_write(path, |out| out.write_all(&bytes))?)
}

/// As [`write_captures`](crate::write_captures).
///
/// # Errors
/// As [`write_captures`](crate::write_captures).
pub fn save_captures(path: &Path, captures: &[CapturedRows]) -> Result<(), Error> {
    let bytes = captures_file(captures).map_err(of(path))?;
    Ok(atomic_write(path, |out| out.write_all(&bytes))?)
}

/// As [`write_merged`](crate::write_merged).
///
/// # Errors
/// As [`write_merged`](crate::write_merged), and [`Error::Overwrites`] if `path` is an input.
pub fn merge(
    base: &ModelFile,
    adapters: &[(AdapterFile, f32)],
    ty: Option<GgmlType>,
    path: impl AsRef<Path>,
    watch: Writing<'_>,
) -> Result<Merged, Error> {
    let path = path.as_ref();
    let files = ["adapter_model.safetensors", "adapter_config.json"];
    let inputs = |path: &Path| [path.to_path_buf()].into_iter().chain(files.map(|name| path.join(name)));
    refuse_input(path, adapters.iter().filter_map(|(adapter, _)| adapter.path()).flat_map(inputs))?;
    refuse_input(path, base.file().paths())?;
    merged(base, adapters, ty, watch, |file| file.save(path))
}

/// As [`write_model`](crate::write_model).
///
/// # Errors
/// As [`write_model`](crate::write_model), and [`Error::Overwrites`] if `path` is that of the base.
pub fn save_model(
    path: impl AsRef<Path>,
    base: &Gguf,
    parameters: &[Parameter],
    ty: GgmlType,
) -> Result<Vec<Fallback>, Error> {
    let path = path.as_ref();
    refuse_input(path, base.paths())?;
    retrained(base, parameters, ty, |file| file.save(path))
}

impl Trainer {
    /// As [`Trainer::write_peft`]. The folder is made if it does not exist.
    ///
    /// # Errors
    /// As [`Trainer::write_peft`].
    pub fn save_peft(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        self.write_peft(&FileDirectory::new(folder)).map_err(of(folder))
    }

    /// As [`Trainer::write_gguf`].
    ///
    /// # Errors
    /// As [`Trainer::write_gguf`].
    pub fn save_gguf(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        save_gguf(path, self.model.summary().architecture, &block_on(self.factors_to_write()).map_err(of(path))?)
    }

    /// As [`Trainer::write_model`].
    ///
    /// # Errors
    /// As [`Trainer::write_model`], and [`Error::Overwrites`] if `path` is that of the model.
    pub fn save_model(&self, path: impl AsRef<Path>, ty: GgmlType) -> Result<Vec<Fallback>, Error> {
        let path = path.as_ref();
        save_model(path, self.model.file(), &block_on(self.weights_to_write()).map_err(of(path))?, ty)
    }

    /// As [`Trainer::write_checkpoint`].
    ///
    /// # Errors
    /// As [`Trainer::write_checkpoint`].
    pub fn save_checkpoint(&self, path: &Path, facts: &Facts, position: &str) -> Result<(), Error> {
        // The error of a device, which the writer of files does not know.
        let mut failed = None;
        let written = atomic_write(path, |out| match self.write_checkpoint(out, facts, position) {
            Err(Error::File(gguf::Error::Write { error })) => Err(error),
            Err(error) => {
                failed = Some(error);
                Err(io::Error::other("the device failed"))
            }
            Ok(()) => Ok(()),
        });
        failed.map_or(Ok(()), Err)?;
        Ok(written?)
    }

    /// As [`Trainer::restore`], from a file.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] with the reason.
    pub fn load_checkpoint(&mut self, path: &Path, facts: &Facts) -> Result<Restored, Error> {
        let file = FileSource::open(path)?;
        self.restore(&file, facts).map_err(|reason| Error::Checkpoint { file: path.display().to_string(), reason })
    }
}

impl Data {
    /// As [`Data::new`], by paths. Files are read where they are needed, not mapped.
    ///
    /// # Errors
    /// As [`Data::new`].
    pub fn open(
        files: &[PathBuf],
        texts: Texts,
        options: &DataOptions,
        progress: &dyn Fn(Progress),
    ) -> Result<Self, Error> {
        let open = |path: &PathBuf| {
            let name = path.display().to_string();
            if let Ok(found) = std::fs::metadata(path)
                && !found.is_file()
            {
                return Err(match found.is_dir() {
                    true => Error::Read { file: name, reason: "it is a folder; name the files in it".to_string() },
                    false => Error::Pipe { file: name },
                });
            }
            let source = FileSource::open(path)?;
            Ok((name, Box::new(source) as Box<dyn Source>))
        };
        Self::new(files.iter().map(open).collect::<Result<_, Error>>()?, texts, options, progress)
    }
}

/// Adds the path to an error of results that have no form as a file.
fn of(path: &Path) -> impl FnOnce(Error) -> Error {
    |error| match error {
        Error::NoForm { reason } => Error::Write { file: path.display().to_string(), reason },
        error => error,
    }
}

/// Refuses a path that names one of the files that are read.
fn refuse_input(path: &Path, inputs: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<(), Error> {
    let Ok(output) = path.canonicalize() else { return Ok(()) };
    match inputs.into_iter().any(|input| input.as_ref().canonicalize().is_ok_and(|input| input == output)) {
        true => Err(Error::Overwrites { file: path.display().to_string() }),
        false => Ok(()),
    }
}
