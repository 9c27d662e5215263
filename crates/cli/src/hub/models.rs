//! Finds a model in the cache, and fetches a model that is not there.

use super::cache::{self, Cached, Repo, is_sha256};
use super::choose::{self, Group};
use super::client::Client;
use super::download::{self, Download};
use super::listing::{Listing, Remote, listing};
use super::name::{Name, Pick};
use super::outcome::Pulled;
use super::settings::Settings;
use crate::exit::note;
use crate::known;
use crate::progress::Bar;
use anyhow::{Context, Result, anyhow};
use model::Size;
use std::path::{Path, PathBuf};

/// The model in the cache; if it is not there, it is fetched.
pub fn find(name: &Name) -> Result<Cached> {
    let settings = Settings::from_env()?;
    match Repo::new(&settings.cache, name).find(&name.pick, settings.offline) {
        Some(cached) => Ok(cached),
        None => Ok(fetch(&Client::new(settings), name)?.model),
    }
}

/// The model in the cache, without a question to the network.
pub fn cached(name: &Name) -> Option<Cached> {
    let settings = Settings::from_env().ok()?;
    Repo::new(&settings.cache, name).find(&name.pick, true)
}

/// Every complete model in the cache.
pub fn models() -> Vec<Cached> {
    let Ok(settings) = Settings::from_env() else { return vec![] };
    cache::repositories(&settings.cache).iter().flat_map(Repo::models).collect()
}

/// Fetches what is missing of the model that the hub has now.
pub fn pull(name: &Name) -> Result<Pulled> {
    let settings = Settings::from_env()?;
    let repo = Repo::new(&settings.cache, name);
    match repo.find(&name.pick, true).filter(|_| settings.offline) {
        None => fetch(&Client::new(settings), name),
        Some(model) => {
            note("HF_HUB_OFFLINE is set: the hub is not asked for a newer file");
            let bytes = model.parts.iter().map(|part| part.metadata().map_or(0, |metadata| metadata.len())).sum();
            Ok(Pulled { model, projector: None, bytes, fetched: 0, commit: repo.main().unwrap_or_default() })
        }
    }
}

impl Cached {
    /// The file to open: the first part.
    pub fn file(mut self) -> PathBuf {
        self.parts.swap_remove(0)
    }

    /// Hashes every part, and reports the bytes done and the total.
    ///
    /// # Errors
    /// The content is not the one that the file is named after.
    pub fn verify(&self, progress: &dyn Fn(u64, u64)) -> Result<()> {
        let bytes = |part: &PathBuf| part.metadata().map_or(0, |metadata| metadata.len());
        let (total, mut done) = (self.parts.iter().map(bytes).sum(), 0);
        for part in &self.parts {
            let blob = part.canonicalize().with_context(|| format!("cannot read {}", part.display()))?;
            let Some(sha256) = blob.file_name().and_then(|name| name.to_str()).filter(|name| is_sha256(name)) else {
                continue;
            };
            let found = download::hash(&blob, &mut |bytes| {
                done += bytes;
                progress(done, total);
            })?;
            if found != sha256 {
                let name = &self.name;
                return Err(anyhow!(
                    "{name} is damaged: {} has the SHA-256 {found}; `weft rm {name}`, then `weft pull {name}`",
                    blob.display()
                ));
            }
        }
        Ok(())
    }
}

fn fetch(client: &Client, name: &Name) -> Result<Pulled> {
    let settings = &client.settings;
    let repo = Repo::new(&settings.cache, name);
    if settings.offline {
        return Err(anyhow!("{name} is not in {}, and HF_HUB_OFFLINE forbids to fetch it", settings.cache.display()));
    }
    let bar = Bar::bytes(format!("asking for {name}"));
    let listing = listing(client, name, &bar)?;
    let group = chosen(&listing, name)?;
    let remote = |path: &str| listing.files.iter().find(|file| file.path == path);
    let parts: Vec<&Remote> = group.parts.iter().filter_map(|path| remote(path)).collect();
    let projector = choose::projector(listing.files.iter().map(|file| file.path.as_str())).and_then(remote);
    let all: Vec<&Remote> = parts.iter().copied().chain(projector).collect();
    let missing = missing(&repo, &listing.commit, &all);
    if missing > 0 {
        let host = settings.endpoint.split_once("://").map_or("", |(_, host)| host);
        room(missing, free(settings)?, &settings.cache)?;
        bar.suspend(|| note(&format!("{name}: downloading {} from {host}", Size(missing))));
    }
    warn_of_change(name, &listing, &group);
    let total = all.iter().fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
    let (mut before, mut fetched) = (0, 0);
    let mut place = |file: &Remote| {
        let commit = &listing.commit;
        fetched += Download { client, repo: &repo, name, commit, file, bar: &bar, before, total }.run()?;
        before += file.bytes;
        match repo.has_copy(commit, &file.path, file.bytes) {
            true => Ok(repo.snapshot(commit).path(&file.path)),
            false => repo.link(commit, &file.path, &file.sha256),
        }
    };
    let parts = parts.into_iter().map(&mut place).collect::<Result<Vec<PathBuf>>>()?;
    // From here on the model runs, whatever becomes of its encoder of images.
    repo.set_main(&listing.commit)?;
    let projector = projector.map(place).transpose()?;
    let groups = repo.snapshot(&listing.commit).groups();
    let name = name.with(choose::pick(&groups, &group));
    Ok(Pulled { model: Cached { name, parts }, projector, bytes: total, fetched, commit: listing.commit })
}

/// The model that the name means on the hub.
fn chosen(listing: &Listing, name: &Name) -> Result<Group> {
    let groups = choose::groups(listing.files.iter().map(|file| file.path.as_str()));
    let group = choose::choose(&groups, &name.pick)
        .map_err(|reason| anyhow!("{}: the repository {reason}", name.with(Pick::Usual)))?;
    if !group.is_whole() {
        return Err(anyhow!("{name}: the hub has {} of the {} parts of this file", group.parts.len(), group.of));
    }
    Ok(group.clone())
}

/// The bytes of these files that are not in the cache.
fn missing(repo: &Repo, commit: &str, files: &[&Remote]) -> u64 {
    let length = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
    let of = |file: &&Remote| {
        if repo.blob(&file.sha256).is_file() || repo.has_copy(commit, &file.path, file.bytes) {
            return 0;
        }
        file.bytes.saturating_sub(length(&download::partial(repo, &file.sha256)))
    };
    files.iter().map(of).fold(0, u64::saturating_add)
}

/// The free disk space where the cache is or will be. `None` if the system does not tell it.
fn free(settings: &Settings) -> Result<Option<u64>> {
    if settings.free.is_some() {
        return Ok(settings.free);
    }
    let cache = &settings.cache;
    std::fs::create_dir_all(cache).with_context(|| format!("cannot create {}", cache.display()))?;
    Ok(fs4::available_space(cache).ok())
}

fn room(needed: u64, free: Option<u64>, cache: &Path) -> Result<()> {
    match free {
        Some(free) if free < needed => Err(anyhow!(
            "the download needs {}, and {} has {} free; make room, or set HF_HOME to another disk",
            Size(needed),
            cache.display(),
            Size(free)
        )),
        _ => Ok(()),
    }
}

/// Tells that a known model has changed on the hub since this version of Weft.
fn warn_of_change(name: &Name, listing: &Listing, group: &Group) {
    let address = |known: &&known::Known| {
        let parsed = Name::parse(&known.address).and_then(Result::ok);
        parsed.is_some_and(|known| {
            known.repository() == name.repository()
                && matches!((&known.pick, &group.tag), (Pick::Quant(quant), Some(tag)) if quant == tag)
        })
    };
    let file = listing.files.iter().find(|file| file.path == group.parts[0]);
    if let (Some(known), Some(file)) = (known::all().iter().find(address), file)
        && known.sha256 != file.sha256
    {
        note(&format!("{}: the hub has another file than this version of weft knows", known.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_both_numbers() {
        let cache = Path::new("cache");
        assert!(room(1000, Some(1000), cache).is_ok() && room(1000, None, cache).is_ok());
        let error = room(2_000_000, Some(1_000_000), cache).unwrap_err().to_string();
        assert!(error.contains("needs 2.0 MB") && error.contains("1.0 MB free"), "{error}");
    }
}
