//! Model names in Ollama's form.

use super::OllamaError;
use std::fmt;
use std::str::FromStr;

const HOST: &str = "registry.ollama.ai";
const USER: &str = "library";
const TAG: &str = "latest";
/// The folder of all manifests.
pub(super) const MANIFESTS: &str = "manifests";

/// `[ollama://][[HOST/]USER/]NAME[:TAG]`, with every part checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The registry.
    pub host: String,
    /// The owner of the model.
    pub user: String,
    /// The model.
    pub model: String,
    /// The variant of the model.
    pub tag: String,
}

impl FromStr for Name {
    type Err = OllamaError;

    fn from_str(text: &str) -> Result<Self, OllamaError> {
        let path = text.strip_prefix("ollama://").unwrap_or(text);
        let refused = || OllamaError::Name { name: text.chars().take(100).collect() };
        let (before, last) = path.rsplit_once('/').map_or((None, path), |(before, last)| (Some(before), last));
        let (model, tag) = last.split_once(':').unwrap_or((last, TAG));
        let (host, user) = match before.map(|before| before.split_once('/')) {
            None => (HOST, USER),
            Some(None) => (HOST, before.unwrap_or(USER)),
            Some(Some((host, user))) => (host, user),
        };
        Self::new(host, user, model, tag).ok_or_else(refused)
    }
}

impl Name {
    /// The name with these parts, if they are valid. No valid part can lead out of a folder.
    pub fn new(host: &str, user: &str, model: &str, tag: &str) -> Option<Self> {
        let sound = part(host, 350, ":.-_") && part(user, 80, ".-_") && part(model, 80, ".-_") && part(tag, 80, ".-_");
        let [host, user, model, tag] = [host, user, model, tag].map(str::to_owned);
        sound.then_some(Self { host, user, model, tag })
    }

    /// The path of the manifest in a store.
    pub(super) fn manifest(&self) -> String {
        format!("{MANIFESTS}/{}", self.parts().join("/"))
    }

    /// The parts, outermost first: the folders and the file name of the manifest.
    fn parts(&self) -> [&str; 4] {
        [&self.host, &self.user, &self.model, &self.tag]
    }

    /// Whether the names are equal except for upper and lower case, which registries ignore.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.parts().iter().zip(other.parts()).all(|(a, b)| a.eq_ignore_ascii_case(b))
    }
}

/// Whether a part is valid: letters, digits and `others`, and first a letter, a digit or an
/// underscore.
fn part(text: &str, longest: usize, others: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= longest
        && text.starts_with(first)
        && !text.contains("..")
        && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

impl fmt::Display for Name {
    /// The shortest form of the name, always with the tag.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, user, model, tag } = self;
        match (host.as_str(), user.as_str()) {
            (HOST, USER) => write!(f, "{model}:{tag}"),
            (HOST, user) => write!(f, "{user}/{model}:{tag}"),
            (host, user) => write!(f, "{host}/{user}/{model}:{tag}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_name_is_read_and_told_back() {
        let cases = [
            ("gemma4", "registry.ollama.ai/library/gemma4/latest", "gemma4:latest"),
            ("gemma4:e2b", "registry.ollama.ai/library/gemma4/e2b", "gemma4:e2b"),
            ("ollama://me/x.y-z:1_0", "registry.ollama.ai/me/x.y-z/1_0", "me/x.y-z:1_0"),
            ("hf.co/u/M-GGUF:Q4_K_M", "hf.co/u/M-GGUF/Q4_K_M", "hf.co/u/M-GGUF:Q4_K_M"),
            ("localhost:5000/u/m", "localhost:5000/u/m/latest", "localhost:5000/u/m:latest"),
            ("registry.ollama.ai/library/m:t", "registry.ollama.ai/library/m/t", "m:t"),
        ];
        for (text, path, short) in cases {
            let name: Name = text.parse().unwrap();
            assert_eq!((name.parts().join("/").as_str(), name.to_string().as_str()), (path, short));
        }
    }

    #[test]
    fn what_could_be_another_path_is_no_name() {
        let long = "x".repeat(81);
        for text in [
            "",
            ":",
            "/",
            "a/",
            "/a",
            "..",
            "a/..",
            "../a",
            ".a",
            "a:..",
            "a:",
            ":a",
            "a:b:c",
            "a//b",
            "a/b/c/d",
            "a\\b",
            "a b",
            "a\0",
            "é",
            "a:b/c",
            "~/a",
            "C:\\a",
            "a:/b",
            "%2e",
            long.as_str(),
        ] {
            assert!(text.parse::<Name>().is_err(), "{text:?}");
        }
    }
}
