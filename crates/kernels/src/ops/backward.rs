//! The operations of training: a loss, for an operation of the forward pass the derivative of the
//! loss by its operands, from the derivative by its result, and the step of an optimizer.

pub use crate::attention::derivatives::*;
pub use crate::elementwise::derivatives::*;
pub use crate::experts::derivatives::*;
pub use crate::language::Backward;
pub use crate::matmul::derivatives::*;
pub use crate::norm::derivatives::*;
pub use crate::training::derivatives::*;
pub use cpu_ref::AdamwSpec;
