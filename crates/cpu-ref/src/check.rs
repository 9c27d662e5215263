//! Length checks whose messages name the operand.

/// Panics unless the operand `what` has exactly `expected` elements.
#[track_caller]
pub(crate) fn len(what: &str, found: usize, expected: usize) {
    assert!(found == expected, "{what} has {found} elements, expected {expected}");
}

/// Panics unless `found` elements of the operand `what` are whole rows of `dim` elements. Returns
/// the number of rows.
#[track_caller]
pub(crate) fn rows(what: &str, found: usize, dim: usize) -> usize {
    assert!(dim > 0, "{what} has rows of 0 elements");
    assert!(found.is_multiple_of(dim), "{what} has {found} elements, not a multiple of the row length {dim}");
    found / dim
}
