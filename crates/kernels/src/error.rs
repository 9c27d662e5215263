//! The errors of this crate.

/// The errors of this crate. A wrong shape in a recorded operation is a bug and panics instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No adapter matches the request.
    #[error("no {wanted}; adapters here: {}", list(.found))]
    NoAdapter { wanted: String, found: Vec<String> },
    /// The driver refused a device with the limits it advertised.
    #[error("the driver of {adapter} refused to open a device: {reason}")]
    NoDevice { adapter: String, reason: String },
    /// The device was lost (driver reset, unplugged, watchdog). It must be opened again.
    #[error("the GPU device was lost in {what}: {reason}; open it again or use the CPU")]
    DeviceLost { what: String, reason: String },
    /// An allocation failed. Other allocations for the same purpose have been freed.
    #[error("out of memory while allocating {bytes} bytes for {what}")]
    OutOfMemory { what: String, bytes: u64 },
    /// A buffer is larger than this device can bind or allocate, and it cannot be split.
    #[error("{what} needs {bytes} bytes in one binding; this device allows {limit}")]
    BindingTooLarge { what: String, bytes: u64, limit: u64 },
    /// A stand-alone operation was called with slices whose lengths do not match.
    #[error("{operation}: {name} has {found} elements, expected {expected}")]
    Shape { operation: &'static str, name: &'static str, expected: usize, found: usize },
    /// A stand-alone operation was called with the wrong number of bytes for its matrix.
    #[error("{operation}: {name} has {found} bytes, expected {expected}")]
    Bytes { operation: &'static str, name: &'static str, expected: usize, found: usize },
    /// A stand-alone operation was called with an argument out of range.
    #[error("{operation}: {problem}")]
    Argument { operation: &'static str, problem: &'static str },
    /// A step or a session needs more positions than its states hold.
    #[error("the context length of {capacity} is too short: {needed} positions are needed")]
    ContextOverflow { needed: usize, capacity: usize },
    /// The caller set the flag that cancels a run.
    #[error("cancelled")]
    Cancelled,
    /// No kernel reads this weight format.
    #[error("tensor {tensor}: no kernel reads weights of type {ty}")]
    Format { tensor: String, ty: &'static str },
    /// A profile was requested on a device that cannot time dispatches.
    #[error("{adapter} has no timestamps; a profile needs them")]
    NoTimestamps { adapter: String },
    /// The file behind a weight could not be read.
    #[error(transparent)]
    Read(#[from] gguf::Error),
    /// A weight cannot be quantized while it loads.
    #[error("tensor {tensor} cannot become {ty}: {error}")]
    Quantize { tensor: String, ty: &'static str, error: Box<gguf::Error> },
    /// The driver refused a pipeline, or the shader compiler refused its shader.
    #[error("this device refused the kernel {kernel}: {reason}")]
    Pipeline { kernel: String, reason: String },
    /// The driver or the validation layer rejected a call. This is a bug in this crate.
    #[error("device error in {what}: {reason}")]
    Device { what: String, reason: String },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}
