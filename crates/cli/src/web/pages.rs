//! The files of the pages: those of the binary, or those of a folder.

use crate::exit::usage;
use anyhow::{Context, Result};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A page of the binary.
#[allow(dead_code, reason = "build.rs makes them, if there are pages")]
enum Page {
    /// Bytes that gzip has packed.
    Packed(&'static [u8]),
    /// The default model.
    Model,
}

/// The pages that `build.rs` found, by their names.
const BUILT: &[(&str, Page)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a folder's name.
const INDEX: &str = "index.html";

pub enum Pages {
    Binary,
    Folder(PathBuf),
}

/// A file as it is sent.
pub struct Served {
    pub bytes: Cow<'static, [u8]>,
    pub media_type: &'static str,
    pub is_packed: bool,
}

impl Pages {
    /// The pages of this binary, if it was built with them.
    pub fn of_binary() -> Option<Self> {
        (!BUILT.is_empty()).then_some(Self::Binary)
    }

    /// The pages of a folder.
    pub fn of_folder(folder: &Path) -> Result<Self> {
        let index = folder.join(INDEX);
        if !index.is_file() {
            return Err(usage(format!("{}: there is no {INDEX} in this folder", folder.display())));
        }
        Ok(Self::Folder(folder.to_owned()))
    }

    /// The file of a URL's path.
    pub fn find(&self, path: &str) -> Result<Option<Served>> {
        let Some(name) = name_of(path) else { return Ok(None) };
        match self {
            Self::Binary => Ok(BUILT.iter().find(|(built, _)| *built == name).map(|(name, page)| of(name, page))),
            Self::Folder(folder) => {
                let file = folder.join(&name);
                if !file.is_file() {
                    return Ok(None);
                }
                let bytes = std::fs::read(&file).with_context(|| name.clone())?;
                Ok(Some(Served { bytes: bytes.into(), media_type: media_type(&name), is_packed: false }))
            }
        }
    }
}

fn of(name: &str, page: &Page) -> Served {
    let (bytes, is_packed) = match page {
        Page::Packed(bytes) => (*bytes, true),
        Page::Model => (crate::open::DEFAULT, false),
    };
    Served { bytes: bytes.into(), media_type: media_type(name), is_packed }
}

/// The relative name of a URL's path; none for a path that leaves the folder. Names of the pages
/// need no escapes.
fn name_of(path: &str) -> Option<String> {
    let name = path.strip_prefix('/')?;
    let name = if name.is_empty() || name.ends_with('/') { format!("{name}{INDEX}") } else { name.to_string() };
    let is_plain =
        |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '%', ':', '\0']);
    name.split('/').all(is_plain).then_some(name)
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_the_folder() {
        assert_eq!(name_of("/").as_deref(), Some("index.html"));
        assert_eq!(name_of("/teach/").as_deref(), Some("teach/index.html"));
        assert_eq!(name_of("/assets/a-1.js").as_deref(), Some("assets/a-1.js"));
        for path in ["", "a", "/../a", "/a/../../b", "//etc/passwd", "/a//b", "/%2e%2e/a", "/a\\b", "/c:/a", "/./a"] {
            assert_eq!(name_of(path), None, "{path}");
        }
    }

    #[test]
    fn a_folder_serves_its_files_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Pages::of_folder(folder.path()).is_err());
        std::fs::write(folder.path().join(INDEX), "<p>").expect("room");
        let pages = Pages::of_folder(folder.path()).expect("an index");
        let found = pages.find("/").expect("readable").expect("a page");
        assert_eq!((&*found.bytes, found.media_type), (&b"<p>"[..], "text/html; charset=utf-8"));
        assert!(pages.find("/a.js").expect("readable").is_none());
    }
}
