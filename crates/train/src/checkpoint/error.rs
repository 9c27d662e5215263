//! Reasons why a checkpoint is refused.

use super::Facts;
use super::facts::FIRST;

/// Something that a checkpoint and this run do not share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub what: String,
    /// The value in the checkpoint.
    pub kept: Option<String>,
    /// The value of this run.
    pub now: Option<String>,
}

/// Reasons why a checkpoint is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    #[error("the file has {found} bytes, but its header needs {expected}: it was cut short")]
    Truncated { expected: u64, found: u64 },
    #[error("the digest at its end is not that of its bytes: the file was altered")]
    Altered,
    #[error("the file is no checkpoint of a training run: {reason}")]
    Foreign { reason: String },
    #[error("the checkpoint has version {found}, this program reads version {known} and older")]
    Version { found: u64, known: u64 },
    #[error("the run cannot go on with other settings: {}", listed(differences))]
    Differs { differences: Vec<Difference> },
    #[error("its tensors are others: {reason}")]
    Tensors { reason: String },
    #[error("the model cannot be identified: {reason}")]
    Base { reason: String },
    #[error("it cannot be read")]
    Read {
        #[source]
        error: std::io::Error,
    },
}

/// Digits of a digest. Such a value says nothing to people.
const DIGEST_DIGITS: usize = 64;

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, kept, now } = self;
        let is_digest =
            |text: &String| text.len() == DIGEST_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (what.as_str(), kept, now) {
            ("weights", ..) => write!(f, "the weights of the model differ"),
            ("model", ..) => write!(f, "the metadata or the tensors of the model differ"),
            (_, Some(kept), Some(now)) if is_digest(kept) && is_digest(now) => write!(f, "{what} differs"),
            (_, Some(kept), Some(now)) => write!(f, "{what} was {kept}, now {now}"),
            (_, Some(kept), None) => write!(f, "{what} was {kept}, now not given"),
            (_, None, Some(now)) => write!(f, "{what} was not given, now {now}"),
            (_, None, None) => write!(f, "{what} differs"),
        }
    }
}

/// The facts in which a checkpoint and a run differ: first what the model and the method are, and
/// the trained tensors only if nothing explains them.
pub fn differences(kept: &Facts, now: &Facts) -> Vec<Difference> {
    let names = kept.keys().chain(now.keys().filter(|name| !kept.contains_key(*name)));
    let difference =
        |name: &String| Difference { what: name.clone(), kept: kept.get(name).cloned(), now: now.get(name).cloned() };
    let mut all: Vec<_> = names.map(difference).filter(|d| d.kept != d.now).collect();
    all.sort_by_key(|of| FIRST.iter().position(|first| *first == of.what).unwrap_or(FIRST.len()));
    if all.len() > 1 {
        all.retain(|of| of.what != "trained");
    }
    all
}
