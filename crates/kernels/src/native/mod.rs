//! For native hosts: single operations on slices, measuring, tuning, and the choice of an executor.

pub mod choose;
pub mod measure;
pub mod run;
pub mod tune;
