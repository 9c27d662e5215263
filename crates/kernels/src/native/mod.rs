//! For native hosts: functions that block, single operations on slices, measurement, tuning and
//! choice of an executor.

pub mod blocking;
pub mod choose;
pub mod measure;
pub mod run;
pub mod tune;
