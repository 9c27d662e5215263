//! Names of models on Hugging Face's hub: `hf:OWNER/REPO[:QUANT|/FILE]`.

use std::fmt;

/// How a name may begin. `hf:` is the spelling that Weft prints.
const PREFIXES: [&str; 7] = [
    "hf://",
    "hf:",
    "hf.co/",
    "huggingface.co/",
    "https://hf.co/",
    "https://huggingface.co/",
    "https://www.huggingface.co/",
];
/// The longest owner or repository that the hub allows.
const LONGEST: usize = 96;

/// A model on the hub. Every part is checked: none can lead out of a folder or of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The user or organisation.
    pub owner: String,
    /// The repository.
    pub repo: String,
    /// Which of the repository's models.
    pub pick: Pick,
}

/// Which of a repository's models is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The usual quantization.
    Usual,
    /// The quantization in the file's name, in any case.
    Quant(String),
    /// A file; of a split file any part.
    File(String),
}

impl Name {
    /// Parses a name that begins as names of the hub do; `None` for any other text.
    ///
    /// # Errors
    /// A part is missing, or has a character that the hub does not allow.
    pub fn parse(text: &str) -> Option<Result<Self, String>> {
        let rest = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix))?;
        let shown: String = text.chars().take(200).collect();
        let refused = || format!("\"{}\" is not a name of the hub: hf:OWNER/REPO[:QUANT|/FILE]", shown.escape_debug());
        Some(Self::of(rest).ok_or_else(refused))
    }

    fn of(rest: &str) -> Option<Self> {
        let rest = rest.split('?').next()?.trim_end_matches('/');
        let (owner, rest) = rest.split_once('/')?;
        let (repo, pick) = match rest.find([':', '/']) {
            None => (rest, Pick::Usual),
            Some(at) if rest[at..].starts_with(':') => (&rest[..at], Pick::Quant(rest[at + 1..].to_string())),
            Some(at) => (&rest[..at], page(&rest[at + 1..])),
        };
        let whole = match &pick {
            Pick::Usual => true,
            Pick::Quant(quant) => part(quant),
            Pick::File(file) => is_path(file) && file.to_lowercase().ends_with(".gguf"),
        };
        let sound = part(owner) && part(repo) && whole;
        sound.then(|| Self { owner: owner.to_string(), repo: repo.to_string(), pick })
    }

    /// The repository, `OWNER/REPO`.
    #[cfg_attr(not(feature = "hub"), allow(dead_code, reason = "only the hub has repositories"))]
    pub fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.repo)
    }

    /// The name of another model in this repository.
    #[cfg_attr(not(feature = "hub"), allow(dead_code, reason = "only the hub has repositories"))]
    pub fn with(&self, pick: Pick) -> Self {
        Self { pick, ..self.clone() }
    }
}

/// The file in the address of a page, `blob/main/FILE`, or the file itself.
fn page(path: &str) -> Pick {
    if path == "tree/main" {
        return Pick::Usual;
    }
    let file = ["blob/main/", "resolve/main/"].iter().find_map(|page| path.strip_prefix(page));
    Pick::File(file.unwrap_or(path).to_string())
}

/// Whether the text can be an owner, a repository or a quantization.
fn part(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    // Two hyphens separate owner and repository in the cache.
    (1..=LONGEST).contains(&text.len())
        && text.chars().all(allowed)
        && !text.starts_with(['.', '-'])
        && !text.contains("..")
        && !text.contains("--")
}

/// Whether a path of a repository is safe below a folder of any system.
pub fn is_path(path: &str) -> bool {
    let sound = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.starts_with('~') && !part.ends_with(['.', ' '])
    };
    path.len() <= 500
        && path.split('/').count() <= 8
        && path.split('/').all(sound)
        && !path.chars().any(|c| c.is_control() || "\\:*?\"<>|".contains(c))
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hf:{}/{}", self.owner, self.repo)?;
        match &self.pick {
            Pick::Usual => Ok(()),
            Pick::Quant(quant) => write!(f, ":{quant}"),
            Pick::File(file) => write!(f, "/{file}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read_and_told_back() {
        let cases = [
            ("hf:Qwen/Qwen3-8B-GGUF", "hf:Qwen/Qwen3-8B-GGUF"),
            ("hf.co/Qwen/Qwen3-8B-GGUF:q4_k_m", "hf:Qwen/Qwen3-8B-GGUF:q4_k_m"),
            ("huggingface.co/a/b:Q8_0", "hf:a/b:Q8_0"),
            ("hf:a/b/sub/x-00001-of-00002.gguf", "hf:a/b/sub/x-00001-of-00002.gguf"),
            ("https://huggingface.co/a/b/", "hf:a/b"),
            ("https://huggingface.co/a/b/tree/main", "hf:a/b"),
            ("https://huggingface.co/a/b/blob/main/x.gguf", "hf:a/b/x.gguf"),
            ("https://huggingface.co/a/b/resolve/main/x.gguf?download=true", "hf:a/b/x.gguf"),
        ];
        for (text, told) in cases {
            assert_eq!(Name::parse(text).unwrap().unwrap().to_string(), told, "{text}");
        }
    }

    #[test]
    fn what_could_leave_the_folder_is_no_name() {
        let long = format!("hf:a/{}", "x".repeat(97));
        for text in [
            "hf:",
            "hf:a",
            "hf:a/",
            "hf:/b",
            "hf:../b",
            "hf:a/..",
            "hf:a/b:",
            "hf:a/b:../c",
            "hf:a/b:c/d",
            "hf:a/b/../c.gguf",
            "hf:a/b//c.gguf",
            "hf:a/b/c.txt",
            "hf:a/b/c\n.gguf",
            "hf:a/b/C:\\c.gguf",
            "hf:a--b/c",
            "hf:a b/c",
            "hf:é/c",
            &long,
        ] {
            assert!(Name::parse(text).unwrap().is_err(), "{text:?}");
        }
        for text in ["qwen3:8b", "a.gguf", "hf", "hfx:a/b"] {
            assert!(Name::parse(text).is_none(), "{text:?}");
        }
    }
}
