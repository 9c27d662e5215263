//! Opens files of examples.

use crate::data::{Data, DataOptions, Texts};
use crate::error::Error;
use gguf::{FileSource, Source};
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
        progress: &dyn Fn(u64, u64),
    ) -> Result<Self, Error> {
        let open = |path: &PathBuf| {
            let name = path.display().to_string();
            if let Some(reason) = std::fs::metadata(path).ok().and_then(|found| unfit(&found)) {
                return Err(Error::Read { file: name, reason: reason.to_string() });
            }
            let source = FileSource::open(path)?;
            Ok((name, Box::new(source) as Box<dyn Source>))
        };
        Self::new(files.iter().map(open).collect::<Result<_, Error>>()?, texts, options, progress)
    }
}

/// Why something that is no regular file cannot be read.
fn unfit(found: &std::fs::Metadata) -> Option<&'static str> {
    if found.is_file() {
        return None;
    }
    Some(match found.is_dir() {
        true => "it is a folder; name the files in it",
        false => {
            "it is a pipe or a device, but a file of examples is read many times; write it to a file, or pipe it in with --data -"
        }
    })
}
