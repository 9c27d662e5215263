//! The errors of instructions, filters and methods.

use minijinja::{Error, ErrorKind};

use super::error::WAY_OUT;

/// The error of an operand that has a wrong type or value.
pub(super) fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, what.into())
}

/// The error of an instruction whose result has no bound.
pub(super) fn refused(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{what} is refused, since nothing bounds it; {WAY_OUT}"))
}

/// In Python, none has no elements; in the engine it is an empty list.
pub(super) fn no_elements(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{what} over none, which has no elements"))
}
