//! Parity cases of every operation, and the sweep that draws and compares them.

#[cfg(not(target_arch = "wasm32"))]
mod blocking;
mod cases;
#[cfg(not(target_arch = "wasm32"))]
pub mod computed;
pub mod drawn;
pub mod fault;
pub mod kinds;
#[cfg(not(target_arch = "wasm32"))]
mod least;
#[cfg(not(target_arch = "wasm32"))]
pub mod own;
pub mod parity;
mod shrinking;
pub mod sweep;
mod switches;
#[cfg(not(target_arch = "wasm32"))]
pub mod wrong;

pub use cases::cases;
pub use switches::Switches;

/// The kernels: declarations, shaders, formats.
pub mod kernel {
    pub use crate::kernel::*;
}

/// Recordings.
pub mod graph {
    pub use crate::graph::*;
}

/// What plans are made of: operations and kernels.
pub mod language {
    pub use crate::language::*;
}

/// The family `elementwise`.
pub mod elementwise {
    pub use crate::elementwise::*;
}

/// The family `sampling`.
pub mod sampling {
    pub use crate::sampling::*;
}

/// The family `norm`.
pub mod norm {
    pub use crate::norm::*;
}

/// The family `matmul`.
pub mod matmul {
    pub use crate::matmul::*;
}

/// The family `attention`.
pub mod attention {
    pub use crate::attention::*;
}

/// The family `experts`.
pub mod experts {
    pub use crate::experts::*;
}

/// The family `training`.
pub mod training {
    pub use crate::training::*;
}

/// Plans on a device or on the host.
pub mod exec {
    pub use crate::exec::*;
}
