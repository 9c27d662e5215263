//! How far some work is.

/// How far some work is, as functions that take long report it. They say what they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The part that is done.
    pub done: u64,
    /// All of it.
    pub total: u64,
}
