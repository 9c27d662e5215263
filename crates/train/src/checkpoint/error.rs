//! Reasons why a checkpoint is refused.

use super::Facts;

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

fn listed(differences: &[Difference]) -> String {
    let none = || "none".to_string();
    let one = |Difference { what, kept, now }: &Difference| {
        format!("{what} was {}, now {}", kept.clone().unwrap_or_else(none), now.clone().unwrap_or_else(none))
    };
    differences.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The facts in which a checkpoint and a run differ.
pub fn differences(kept: &Facts, now: &Facts) -> Vec<Difference> {
    let names = kept.keys().chain(now.keys().filter(|name| !kept.contains_key(*name)));
    let difference = |name: &String| Difference { what: name.clone(), kept: kept.get(name).cloned(), now: now.get(name).cloned() };
    names.map(difference).filter(|d| d.kept != d.now).collect()
}
