//! The folder of a run: its checkpoints, its log and its results.
//!
//! ```text
//! checkpoint-00000120.safetensors                   the states of the trainer after a number of steps
//! log.jsonl                                         one line for each step
//! adapter_config.json, adapter_model.safetensors    the adapter in PEFT's form,
//! adapter.gguf                                      and in llama.cpp's
//! model.gguf                                        the model, where all weights are trained
//! loss.svg, trace.jsonl
//! run.json, held-out.json, rehearsal.jsonl          how the run began, and what it holds out and rehearses
//! last/                                             the adapter or the model of the last step, if
//!                                                   examples are held out; that of the best step is above
//! ```

use crate::checkpoint::{Facts, Restored};
use crate::error::{Error, FolderError};
use crate::log::{self, Record};
use crate::trainer::Trainer;
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

/// What is done with a run that a folder already holds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// The folder is refused.
    #[default]
    New,
    /// The run goes on from its last checkpoint.
    Resume,
    /// The run is deleted.
    Force,
}

/// The file of the log.
const LOG: &str = "log.jsonl";

/// The other files of a run, besides its checkpoints.
const RESULTS: [&str; 9] = [
    "adapter_config.json",
    "adapter_model.safetensors",
    "adapter.gguf",
    "model.gguf",
    "loss.svg",
    "trace.jsonl",
    "run.json",
    "held-out.json",
    "rehearsal.jsonl",
];

/// Files that say how a run began, and hold nothing of it.
const BEGUN: [&str; 3] = ["run.json", "held-out.json", "rehearsal.jsonl"];

/// The folder of the results of the last step.
const LAST: &str = "last";

/// The folder of a run. While this exists, no other process can train in the folder.
pub struct Folder {
    path: PathBuf,
    log: File,
    records: Vec<Record>,
    /// The end of each record in the log, in bytes.
    ends: Vec<u64>,
}

impl Folder {
    /// Makes the folder if there is none, and opens its log.
    ///
    /// # Errors
    /// [`Error::Folder`] with the reason.
    pub fn open(path: impl Into<PathBuf>, begin: Begin) -> Result<Self, Error> {
        let path = path.into();
        Self::opened(&path, begin).map_err(|reason| Error::Folder { folder: path, reason })
    }

    fn opened(path: &Path, begin: Begin) -> Result<Self, FolderError> {
        let failed = |action| move |error| FolderError::Io { action, error };
        fs::create_dir_all(path).map_err(failed("the folder cannot be made"))?;
        let held = held(path).map_err(failed("the folder cannot be read"))?;
        refuse(&held, begin)?;
        let mut options = File::options();
        let options = options.create(true).read(true).write(true).truncate(false);
        let mut log = options.open(path.join(LOG)).map_err(failed("its log.jsonl cannot be opened"))?;
        match log.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(FolderError::Busy),
            // Some file systems have no locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let (mut records, mut ends) = (vec![], vec![]);
        if begin == Begin::Resume {
            (records, ends) = log::read(&mut log).map_err(failed("its log.jsonl cannot be read"))?;
        } else {
            let last = fs::read_dir(path.join(LAST)).into_iter().flatten().flatten().map(|entry| entry.path());
            let last = last.filter(|file| RESULTS.contains(&&*name(file))).collect::<Vec<_>>();
            for file in held.iter().filter(|file| name(file) != LOG).chain(&last) {
                fs::remove_file(file).map_err(failed("a file of its run cannot be deleted"))?;
            }
            // A folder that is not there, or that has files of somebody else, stays as it is.
            let _ = fs::remove_dir(path.join(LAST));
        }
        let mut folder = Self { path: path.to_path_buf(), log, records, ends };
        folder.cut(if begin == Begin::Resume { u64::MAX } else { 0 })?;
        Ok(folder)
    }

    /// Whether a run may begin in a folder, which need not exist.
    ///
    /// # Errors
    /// [`Error::Folder`] for a folder that holds a run, if `begin` is new.
    pub fn check(path: &Path, begin: Begin) -> Result<(), Error> {
        let held = match held(path) {
            Ok(held) => held,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                let reason = FolderError::Io { action: "the folder cannot be read", error };
                return Err(Error::Folder { folder: path.to_path_buf(), reason });
            }
        };
        refuse(&held, begin).map_err(|reason| Error::Folder { folder: path.to_path_buf(), reason })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in the folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder for the results of the last step, which is made if it is not there.
    ///
    /// # Errors
    /// [`Error::Folder`] if it cannot be made.
    pub fn last(&self) -> Result<PathBuf, Error> {
        let last = self.path.join(LAST);
        let made = fs::create_dir_all(&last)
            .map_err(|error| FolderError::Io { action: "its folder last cannot be made", error });
        made.map_err(|reason| Error::Folder { folder: self.path.clone(), reason })?;
        Ok(last)
    }

    /// The steps of the run so far.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Adds a step to the log.
    ///
    /// # Errors
    /// [`Error::Folder`] if it cannot be written.
    pub fn log(&mut self, record: Record) -> Result<(), Error> {
        let line = format!("{}\n", record.to_json());
        let end = self.ends.last().copied().unwrap_or(0) + line.len() as u64;
        let written = self
            .log
            .write_all(line.as_bytes())
            .map_err(|error| FolderError::Io { action: "its log.jsonl cannot be written", error });
        if let Err(reason) = written {
            // A part of the line would spoil the lines behind it.
            let _ = self.cut(u64::MAX);
            return Err(Error::Folder { folder: self.path.clone(), reason });
        }
        self.records.push(record);
        self.ends.push(end);
        Ok(())
    }

    /// Leaves the steps up to this one in the log.
    fn cut(&mut self, step: u64) -> Result<(), FolderError> {
        let kept = self.records.partition_point(|record| record.step <= step);
        self.records.truncate(kept);
        self.ends.truncate(kept);
        let end = self.ends.last().copied().unwrap_or(0);
        let cut = self.log.set_len(end).and_then(|()| self.log.seek(io::SeekFrom::Start(end)));
        cut.map(drop).map_err(|error| FolderError::Io { action: "its log.jsonl cannot be written", error })
    }

    /// Saves a checkpoint under the number of the trainer's steps, and deletes all but the `keep`
    /// newest ones. Returns its path.
    ///
    /// # Errors
    /// As [`Trainer::save_checkpoint`]; the checkpoints before stay.
    pub fn save(&self, trainer: &Trainer, facts: &Facts, position: &str, keep: usize) -> Result<PathBuf, Error> {
        let path = self.path.join(format!("checkpoint-{:08}.safetensors", trainer.tally().steps));
        trainer.save_checkpoint(&path, facts, position)?;
        let mut old = self.checkpoints()?;
        old.truncate(old.len().saturating_sub(keep.max(1)));
        // An old checkpoint that cannot be deleted does no harm.
        old.into_iter().filter(|(_, file)| *file != path).for_each(|(_, file)| drop(fs::remove_file(file)));
        Ok(path)
    }

    /// Gives a trainer the state of the newest checkpoint, if there is one, and takes the steps
    /// behind it out of the log. Returns what the checkpoint says beside.
    ///
    /// # Errors
    /// As [`Trainer::load_checkpoint`].
    pub fn resume(&mut self, trainer: &mut Trainer, facts: &Facts) -> Result<Option<Restored>, Error> {
        let newest = self.checkpoints()?.pop();
        let restored = newest.map(|(_, path)| trainer.load_checkpoint(&path, facts)).transpose()?;
        self.cut(trainer.tally().steps).map_err(|reason| Error::Folder { folder: self.path.clone(), reason })?;
        Ok(restored)
    }

    /// The number of steps of the newest checkpoint.
    #[must_use]
    pub fn last_saved(&self) -> Option<u64> {
        self.checkpoints().ok()?.pop().map(|(steps, _)| steps)
    }

    /// The checkpoints by rising number of steps.
    fn checkpoints(&self) -> Result<Vec<(u64, PathBuf)>, Error> {
        let files = held(&self.path);
        let failed = |error| FolderError::Io { action: "the folder cannot be read", error };
        let files = files.map_err(|error| Error::Folder { folder: self.path.clone(), reason: failed(error) })?;
        let mut all: Vec<(u64, PathBuf)> = files.into_iter().filter_map(|file| Some((steps(&file)?, file))).collect();
        all.sort();
        Ok(all)
    }
}

/// Refuses a folder that holds a run, if `begin` is new.
fn refuse(held: &[PathBuf], begin: Begin) -> Result<(), FolderError> {
    let held: Vec<&PathBuf> = held.iter().filter(|file| !BEGUN.contains(&&*name(file))).collect();
    let ([first, rest @ ..], Begin::New) = (&held[..], begin) else { return Ok(()) };
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    Err(FolderError::HoldsRun { files: format!("{}{more}", name(first)) })
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The number of steps in the name of a checkpoint.
fn steps(file: &Path) -> Option<u64> {
    name(file).strip_prefix("checkpoint-")?.strip_suffix(".safetensors")?.parse().ok()
}

/// The files of a run in a folder, the newest checkpoint first. An empty log is none.
fn held(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = vec![];
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        let is_log = name(&file) == LOG && fs::metadata(&file)?.len() > 0;
        if is_log || steps(&file).is_some() || RESULTS.contains(&&*name(&file)) {
            files.push(file);
        }
    }
    files.sort_by_key(|file| std::cmp::Reverse(steps(file)));
    Ok(files)
}
