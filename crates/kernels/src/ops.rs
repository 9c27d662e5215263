//! The operations that a recording may hold, each with the function that records it.

pub mod backward;

pub use crate::attention::recorded::*;
pub use crate::elementwise::recorded::*;
pub use crate::experts::recorded::*;
pub use crate::language::{Op, Recorder};
pub use crate::matmul::recorded::*;
pub use crate::norm::recorded::*;
pub use crate::sampling::recorded::*;
