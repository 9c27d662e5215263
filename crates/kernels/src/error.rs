//! What can go wrong between a device and a caller.

/// The errors of this crate. A wrong shape inside a recorded dispatcher is a bug and asserts instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No adapter answers to the request.
    #[error("no {wanted}; adapters here: {}", list(.found))]
    NoAdapter { wanted: String, found: Vec<String> },
    /// The driver refused a device with the limits it advertised.
    #[error("adapter {adapter} gave no device: {reason}")]
    NoDevice { adapter: String, reason: String },
    /// The device went away (driver reset, unplugged, watchdog); it must be opened again.
    #[error("the GPU device was lost: {reason}; open it again or use --device cpu")]
    DeviceLost { reason: String },
    /// An allocation failed; what was allocated for the same purpose has been freed.
    #[error("out of memory while allocating {bytes} bytes for {what}")]
    OutOfMemory { what: String, bytes: u64 },
    /// A buffer is larger than this device can bind or allocate, and cannot be split.
    #[error("{what} needs {bytes} bytes in one binding, this device allows {limit}")]
    BindingTooLarge { what: String, bytes: u64, limit: u64 },
    /// A stand-alone operation was called with slices that do not fit each other.
    #[error("{operation}: {name} has {found} elements, expected {expected}")]
    Shape { operation: &'static str, name: &'static str, expected: usize, found: usize },
    /// A stand-alone operation was called with bytes that are not those of its matrix.
    #[error("{operation}: {name} has {found} bytes, expected {expected}")]
    Bytes { operation: &'static str, name: &'static str, expected: usize, found: usize },
    /// A stand-alone operation was called with a size or a number that it does not take.
    #[error("{operation}: {problem}")]
    Argument { operation: &'static str, problem: &'static str },
    /// A step or a session asks for more positions than its states hold.
    #[error("the context of {capacity} positions is full, {needed} are needed")]
    ContextOverflow { needed: usize, capacity: usize },
    /// The caller's flag asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// A weight format that no kernel reads.
    #[error("tensor {tensor}: type {ty} is not a weight format that kernels read")]
    Format { tensor: String, ty: &'static str },
    /// A profile was asked for where dispatches cannot be timed.
    #[error("{adapter} gives no timestamps between dispatches, which a profile needs")]
    NoTimestamps { adapter: String },
    /// The file behind a weight could not be read.
    #[error(transparent)]
    Read(#[from] gguf::Error),
    /// The driver or the validation layer rejected our work: a bug in this crate.
    #[error("device error in {what}: {reason}")]
    Device { what: String, reason: String },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}
