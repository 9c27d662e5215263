//! The language of recordings: tensors, states and inputs, operations and what each says of itself, and the recorder that they are appended to.

pub mod host;
pub mod input;
pub mod operation;
pub mod record;
pub mod sampling;
pub mod tensor;
