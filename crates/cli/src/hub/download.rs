//! Downloads one file: by one program at a time, from where the last download ended, and checked
//! before it gets its name.

use super::cache::Repo;
use super::client::{Client, FETCHING, Failure, Patience, header};
use super::listing::Remote;
use super::name::Name;
use crate::exit::note;
use crate::progress::Bar;
use anyhow::{Context, Result, anyhow};
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use ureq::Body;
use ureq::http::Response;

/// Bytes read and hashed at a time.
const CHUNK: usize = 256 << 10;
/// So many new bytes are progress: all tries are left again.
const PROGRESS: u64 = 1 << 20;

/// A file to download.
pub struct Download<'a> {
    pub client: &'a Client,
    pub repo: &'a Repo,
    pub name: &'a Name,
    pub commit: &'a str,
    pub file: &'a Remote,
    pub bar: &'a Bar,
    /// Bytes of the files before this one, and of all.
    pub before: u64,
    pub total: u64,
}

/// The path of the content while it is incomplete.
pub fn partial(repo: &Repo, sha256: &str) -> PathBuf {
    repo.blob(&format!("{sha256}.incomplete"))
}

/// The path of a blob's lock.
pub fn lock(repo: &Repo, sha256: &str) -> PathBuf {
    repo.locks.join(format!("{sha256}.lock"))
}

impl Download<'_> {
    /// Downloads the blob unless it is there; returns the bytes that came over the network.
    pub fn run(&self) -> Result<u64> {
        let (blob, partial) = (self.repo.blob(&self.file.sha256), partial(self.repo, &self.file.sha256));
        let is_here = || blob.is_file() || self.repo.has_copy(self.commit, &self.file.path, self.file.bytes);
        if is_here() {
            return Ok(0);
        }
        let _lock = self.lock()?;
        if is_here() {
            return Ok(0);
        }
        blob.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .with_context(|| format!("cannot create {}", blob.display()))?;
        self.say();
        let fetched = self.fetch(&partial)?;
        fs::rename(&partial, &blob).with_context(|| format!("cannot write {}", blob.display()))?;
        Ok(fetched)
    }

    fn say(&self) {
        self.bar.say(format!("downloading {}", self.file.path));
    }

    fn report(&self, bytes: u64) {
        self.bar.set(self.before + bytes, self.total);
    }

    /// Waits until no other program downloads this blob.
    fn lock(&self) -> Result<Option<File>> {
        let path = lock(self.repo, &self.file.sha256);
        let cannot = || format!("cannot lock {}", path.display());
        path.parent().map_or(Ok(()), fs::create_dir_all).with_context(cannot)?;
        let file = OpenOptions::new().create(true).append(true).open(&path).with_context(cannot)?;
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {}
            // Some network file systems have no locks.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        note(&format!("another program downloads {}; waiting for its end", self.file.path));
        file.lock().with_context(cannot)?;
        Ok(Some(file))
    }

    /// Fetches the missing bytes, in as many tries as there are, and checks the whole.
    fn fetch(&self, path: &Path) -> Result<u64> {
        let address =
            self.client.address(&[&self.name.owner, &self.name.repo, "resolve", self.commit, &self.file.path]);
        let mut partial = Partial::open(path, self.file.bytes, &|bytes| self.report(bytes))?;
        let (mut patience, mut mended, mut fetched) =
            (Patience::new(FETCHING, &self.client.settings), partial.bytes == 0, 0);
        loop {
            while partial.bytes < self.file.bytes {
                let before = partial.bytes;
                let tried = self.try_once(&address, &mut partial);
                let new = partial.bytes.saturating_sub(before);
                fetched += new;
                if new >= PROGRESS {
                    patience.renew();
                }
                if let Err(failure) = tried {
                    patience.wait(failure, self.bar)?;
                    self.say();
                }
            }
            let found = partial.sha256();
            if found == self.file.sha256 {
                partial.file.sync_all().with_context(|| cannot_write(path))?;
                return Ok(fetched);
            }
            partial.restart().with_context(|| cannot_write(path))?;
            // Bytes of an earlier run may be wrong: they are fetched again, once.
            if std::mem::replace(&mut mended, true) {
                let (name, file) = (self.name.repository(), &self.file.path);
                return Err(anyhow!(
                    "{name}: {file} arrived with the SHA-256 {found}, the hub lists {}; nothing of it is kept",
                    self.file.sha256
                ));
            }
        }
    }

    /// Reads one answer into the file.
    fn try_once(&self, address: &str, partial: &mut Partial) -> Result<(), Failure> {
        let answer = self.client.get(address, partial.bytes, self.name)?;
        let path = partial.path.clone();
        let cannot = || cannot_write(&path);
        match answer.status().as_u16() {
            200 if partial.bytes > 0 => partial.restart().with_context(cannot)?,
            200 => {}
            206 if range(&answer) == Some((partial.bytes, self.file.bytes)) => {}
            _ => {
                partial.restart().with_context(cannot)?;
                return Err(Failure::again("the hub does not continue the file where it was cut"));
            }
        }
        let missing = self.file.bytes - partial.bytes;
        let promised = header(&answer, "content-length").and_then(|text| text.parse::<u64>().ok());
        if promised.is_some_and(|promised| promised != missing) {
            return Err(self.wrong_length().into());
        }
        let (mut body, mut chunk) = (answer.into_body().into_reader(), vec![0; CHUNK]);
        loop {
            let n = match body.read(&mut chunk) {
                Ok(0) if partial.bytes == self.file.bytes => return Ok(()),
                Ok(0) => return Err(Failure::again("the connection was cut")),
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // The last byte is here: what the connection does now does not matter.
                Err(_) if partial.bytes == self.file.bytes => return Ok(()),
                Err(error) => return Err(Failure::again(format!("the connection was cut: {error}"))),
            };
            if n as u64 > self.file.bytes - partial.bytes {
                return Err(self.wrong_length().into());
            }
            partial.write(&chunk[..n])?;
            self.report(partial.bytes);
        }
    }

    fn wrong_length(&self) -> anyhow::Error {
        let (name, Remote { path, bytes, .. }) = (self.name.repository(), self.file);
        anyhow!("{name}: the hub lists {path} with {bytes} bytes and sends another number")
    }
}

/// The first byte and the total of a `Content-Range`.
fn range(answer: &Response<Body>) -> Option<(u64, u64)> {
    let (bounds, total) = header(answer, "content-range")?.strip_prefix("bytes ")?.split_once('/')?;
    Some((bounds.split_once('-')?.0.trim().parse().ok()?, total.trim().parse().ok()?))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// The content that is there, and its hash.
struct Partial {
    path: PathBuf,
    file: File,
    bytes: u64,
    hasher: Sha256,
}

impl Partial {
    /// Opens the file and hashes its content. A file longer than `most` bytes starts anew.
    fn open(path: &Path, most: u64, report: &dyn Fn(u64)) -> Result<Self> {
        let file = OpenOptions::new().create(true).read(true).write(true).truncate(false).open(path);
        let file = file.with_context(|| cannot_write(path))?;
        let mut partial = Self { path: path.to_path_buf(), file, bytes: 0, hasher: Sha256::new() };
        let mut chunk = vec![0; CHUNK];
        loop {
            match partial.file.read(&mut chunk).with_context(|| format!("cannot read {}", path.display()))? {
                0 => return Ok(partial),
                n if partial.bytes + n as u64 > most => {
                    partial.restart().with_context(|| cannot_write(path))?;
                    return Ok(partial);
                }
                n => {
                    partial.hasher.update(&chunk[..n]);
                    partial.bytes += n as u64;
                    report(partial.bytes);
                }
            }
        }
    }

    fn restart(&mut self) -> std::io::Result<()> {
        (self.bytes, self.hasher) = (0, Sha256::new());
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0)).map(|_| ())
    }

    fn write(&mut self, chunk: &[u8]) -> Result<()> {
        if let Err(error) = self.file.write_all(chunk) {
            let full = error.kind() == ErrorKind::StorageFull;
            let way = if full { "; make room and try again, the download goes on from here" } else { "" };
            return Err(anyhow!("{}: {error}{way}", cannot_write(&self.path)));
        }
        self.hasher.update(chunk);
        self.bytes += chunk.len() as u64;
        Ok(())
    }

    fn sha256(&self) -> String {
        self.hasher.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The SHA-256 of a file; `report` gets the number of bytes of each step.
pub fn hash(path: &Path, report: &mut dyn FnMut(u64)) -> Result<String> {
    let (mut hasher, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    let cannot = || format!("cannot read {}", path.display());
    let mut file = File::open(path).with_context(cannot)?;
    loop {
        match file.read(&mut chunk).with_context(cannot)? {
            0 => return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            n => {
                hasher.update(&chunk[..n]);
                report(n as u64);
            }
        }
    }
}
