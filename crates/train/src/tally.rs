//! The steps of a run, counted.

/// What a trainer has counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps, those without a change among them.
    pub steps: u64,
    /// Steps that changed the parameters.
    pub updates: u32,
    /// Steps without a change, since their loss or norm was no finite number.
    pub skipped: u64,
    /// The last of them that came one after the other.
    pub skipped_in_a_row: u32,
}
