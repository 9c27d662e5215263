//! The parts of recordings: tensors, states, inputs, operations with their properties, and the
//! recorder to which operations are appended.

pub mod host;
pub mod input;
#[macro_use]
pub mod operation;
pub mod record;
pub mod sampling;
pub mod tensor;
#[macro_use]
pub mod values;
