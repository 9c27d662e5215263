//! Reasons why a checkpoint is refused.

use super::difference::Difference;

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
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
