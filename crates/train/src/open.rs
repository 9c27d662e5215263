//! Opens files of examples.

use crate::data::{Data, DataOptions, Texts};
use crate::error::Error;
use gguf::{FileSource, Progress, Source};
use std::path::PathBuf;

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
