//! Reference operations.
