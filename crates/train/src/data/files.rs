//! Files of examples, by an index.

use super::bytes::{Bytes, CHUNK_BYTES};
use super::gzip::unpack;
use super::index::Index;
use super::kind::{HEAD_BYTES, Holds, Kind, holds, inside};
use super::lines::Place;
use super::options::{Counts, DataOptions};
use super::reader::{Read, Reader};
use super::split::{Part, Split};
use super::texts::Texts;
use crate::batch::Document;
use crate::checkpoint::Facts;
use crate::error::Error;
use crate::hex::hex;
use gguf::{Progress, Source};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::BufReader;
use std::sync::Arc;

/// Examples in files, in any order. Memory does not grow with the number of examples. Clones share
/// the files.
#[derive(Clone)]
pub struct Data {
    files: Arc<Files>,
    part: Part,
}

struct Files {
    files: Vec<File>,
    texts: Texts,
    options: DataOptions,
    index: Index,
    tally: Tally,
    digest: String,
}

/// What is known of what was read.
#[derive(Default)]
pub(super) struct Tally {
    pub counts: Counts,
    /// Columns and keys that had no effect.
    pub unused: BTreeSet<String>,
}

/// Names of unused columns that are kept at most.
const UNUSED: usize = 64;

struct File {
    name: String,
    source: Box<dyn Source>,
    kind: Kind,
}

impl File {
    fn open(name: String, source: Box<dyn Source>, progress: &dyn Fn(Progress)) -> Result<Self, Error> {
        let head = |source: &dyn Source| -> Result<Vec<u8>, String> {
            let mut head = vec![0; HEAD_BYTES.min(usize::try_from(source.len_bytes()).unwrap_or(HEAD_BYTES))];
            source.read_at(0, &mut head).map_err(|error| error.to_string())?;
            Ok(head)
        };
        let open = |source: Box<dyn Source>| -> Result<(Box<dyn Source>, Kind), String> {
            match holds(&name, &head(&*source)?)? {
                Holds::Examples(kind) => Ok((source, kind)),
                Holds::Gzip => {
                    let unpacked = unpack(&*source, progress)?;
                    let kind = inside(&name, &head(&*unpacked)?)?;
                    Ok((unpacked, kind))
                }
            }
        };
        match open(source) {
            Ok((source, kind)) => Ok(Self { name, source, kind }),
            Err(reason) => Err(Error::Read { file: name, reason }),
        }
    }

    fn read<F: FnMut(&[u8])>(&self, place: Place, seen: F) -> Reader<BufReader<Bytes<'_, F>>> {
        let bytes = Bytes::new(&*self.source, place.at, seen);
        Reader::new(BufReader::with_capacity(CHUNK_BYTES, bytes), self.kind, place)
    }

    fn unread(&self, reason: impl ToString) -> Error {
        Error::Read { file: self.name.clone(), reason: reason.to_string() }
    }
}

impl Tally {
    /// Counts what was read. Returns its documents, or the error of a bad line.
    pub fn take(&mut self, name: &str, read: Read, skip_bad: bool) -> Result<Vec<Document>, Error> {
        let counts = &mut self.counts;
        match read.example {
            Ok(example) => {
                counts.cut += example.cut;
                counts.dropped += example.dropped;
                counts.examples += u64::from(!example.documents.is_empty());
                counts.documents += example.documents.len() as u64;
                counts.tokens += example.documents.iter().map(|document| document.ids.len() as u64).sum::<u64>();
                counts.targets += example.targets;
                counts.longest =
                    example.documents.iter().fold(counts.longest, |most, document| most.max(document.ids.len() as u32));
                for name in example.unused {
                    if self.unused.len() < UNUSED {
                        self.unused.insert(name.chars().take(UNUSED).collect());
                    }
                }
                Ok(example.documents)
            }
            Err(_) if skip_bad => {
                counts.bad += 1;
                Ok(vec![])
            }
            Err(reason) => Err(Error::Data { file: name.to_string(), line: read.place.line, reason }),
        }
    }
}

impl Data {
    /// Reads named files once: checks every line, counts, and keeps an index. Files that begin with
    /// `{` have an example in each line, and files that begin with `[` are one list of examples.
    /// Files without a name of JSON that begin otherwise are text, cut into documents of
    /// [`DataOptions::length`] tokens. What gzip has packed is unpacked into a temporary file that
    /// has no name, so that nothing of it stays behind. `progress` gets the bytes that
    /// were read.
    ///
    /// # Errors
    /// [`Error::Data`] with the file, the line and the reason; [`Error::NoExample`];
    /// [`Error::Empty`]; [`Error::Read`], also for a form that is not read, with a command that
    /// converts it.
    pub fn new(
        files: Vec<(String, Box<dyn Source>)>,
        texts: Texts,
        options: &DataOptions,
        progress: &dyn Fn(Progress),
    ) -> Result<Self, Error> {
        let files: Vec<File> =
            files.into_iter().map(|(name, source)| File::open(name, source, progress)).collect::<Result<_, _>>()?;
        let total = files.iter().map(|file| file.source.len_bytes()).sum();
        let (mut done, mut hash, mut tally, mut index) = (0, Sha256::new(), Tally::default(), Index::new());
        let mut empty = true;
        for (n, file) in (0..).zip(&files) {
            hash.update(file.source.len_bytes().to_le_bytes());
            let mut reader = file.read(Place::START, |bytes| {
                hash.update(bytes);
                done += bytes.len() as u64;
                progress(Progress { done, total });
            });
            while let Some(read) = reader.next(&texts, options).map_err(|error| file.unread(error))? {
                let place = read.place;
                empty = false;
                if !tally.take(&file.name, read, options.skip_bad)?.is_empty() {
                    index.push(n, place);
                }
            }
        }
        if index.len() == 0 {
            let files = files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ");
            if empty {
                return Err(Error::Empty { files });
            }
            return Err(Error::NoExample { files, bad: tally.counts.bad, dropped: tally.counts.dropped });
        }
        let (part, digest, options) = (Part::All { len: index.len() }, hex(&hash.finalize()), options.clone());
        Ok(Self { files: Arc::new(Files { files, texts, options, index, tally, digest }), part })
    }

    /// Number of examples; at least 1.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.part.len()
    }

    /// The number of its n-th example among those of all files, from 0.
    ///
    /// # Panics
    /// If `n` is not below [`Data::len`].
    #[must_use]
    pub fn number(&self, n: u64) -> u64 {
        assert!(n < self.len(), "example {n} of {}", self.len());
        self.part.example(n)
    }

    /// The documents of the n-th example; at least one.
    ///
    /// # Errors
    /// [`Error::Read`], also if the file has changed since it was checked.
    ///
    /// # Panics
    /// If `n` is not below [`Data::len`].
    pub fn documents(&self, n: u64) -> Result<Vec<Document>, Error> {
        assert!(n < self.len(), "example {n} of {}", self.len());
        let Files { files, texts, options, index, tally: Tally { counts, .. }, .. } = &*self.files;
        let (first, mut place, mut passed) = index.find(self.part.example(n));
        let all_usable = counts.bad == 0 && counts.dropped == 0;
        let changed = |file: &File| file.unread("the file has changed since it was checked");
        for file in &files[first as usize..] {
            let mut reader = file.read(place, |_| ());
            let unread = |error| file.unread(error);
            // Where every example can be used, those that are passed are not read as such.
            while all_usable && passed > 0 && reader.pass(texts, options).map_err(unread)? {
                passed -= 1;
            }
            while let Some(read) = reader.next(texts, options).map_err(unread)? {
                let example = match read.example {
                    Err(_) if !options.skip_bad => return Err(changed(file)),
                    example => example.unwrap_or_default(),
                };
                match (example.documents.is_empty(), passed) {
                    (true, _) => {}
                    (false, 0) => return Ok(example.documents),
                    (false, _) => passed -= 1,
                }
            }
            place = Place::START;
        }
        Err(changed(&files[first as usize]))
    }

    /// What the files have, in all parts together.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.files.tally.counts
    }

    /// Columns of lines and keys of messages that had no effect, by name; the first 64 that were
    /// found, in all parts together.
    #[must_use]
    pub fn unused(&self) -> Vec<&str> {
        self.files.tally.unused.iter().map(String::as_str).collect()
    }

    /// How texts become ids.
    #[must_use]
    pub fn texts(&self) -> &Texts {
        &self.files.texts
    }

    /// SHA-256 of the lengths and the bytes of all files, in hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.files.digest
    }

    /// What the documents depend on, for checkpoints: bytes, options, template, and the part.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let DataOptions { length, longer, learn, skip_bad } = self.files.options;
        let examples = format!("length {length}, longer {longer:?}, learnt {learn:?}, bad lines skipped {skip_bad}");
        let part = match self.part {
            Part::All { .. } => "all".to_string(),
            Part::Training(Split { chosen, seed, .. }) => format!("all but {chosen} by seed {seed}"),
            Part::Validation(Split { chosen, seed, .. }) => format!("{chosen} by seed {seed}"),
        };
        let facts = [
            ("data", self.digest().to_string()),
            ("documents", examples),
            ("part", part),
            ("texts", self.texts().fact()),
        ];
        facts.into_iter().map(|(name, fact)| (name.to_string(), fact)).collect()
    }

    /// Two parts: for training, and a `share` of the examples for validation, at least one. One of
    /// every 1 / `share` neighbours is for validation, chosen by `seed`. Both parts keep the order.
    ///
    /// # Errors
    /// [`Error::Split`] if `share` is not above 0 and at most 0.5, or if there is only one example.
    pub fn split(&self, share: f64, seed: u64) -> Result<(Self, Self), Error> {
        let len = self.len();
        let refused = |reason| Err(Error::Split { share, examples: len, reason });
        if !(share > 0.0 && share <= 0.5) {
            return refused("it is above 0 and at most 0.5");
        }
        let Part::All { .. } = self.part else { return refused("they are a share already") };
        if len < 2 {
            return refused("two examples are needed");
        }
        let split = Split { len, chosen: ((len as f64 * share).round() as u64).clamp(1, len / 2), seed };
        let part = |part| Self { files: self.files.clone(), part };
        Ok((part(Part::Training(split)), part(Part::Validation(split))))
    }
}
