//! Parity cases of every operation, and the sweep that draws and compares them.

pub mod cases;
pub mod computed;
pub mod drawn;
pub mod fault;
pub mod kinds;
mod least;
pub mod parity;
mod shrinking;
pub mod sweep;
pub mod wrong;

/// The kernels: declarations, shaders, formats.
pub mod kernel {
    pub use crate::kernel::*;
}

/// Recordings.
pub mod graph {
    pub use crate::graph::*;
}

/// The operations that plans are made of, and their kernels.
pub mod lower {
    pub use crate::lower::*;
}

/// Plans on a device or on the host.
pub mod exec {
    pub use crate::exec::*;
}
