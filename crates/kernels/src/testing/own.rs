//! The sweep over a kernel of another crate.

use crate::device::Device;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::kernel::compose::Shader;
use crate::native::blocking::block_on;
use crate::testing::parity::MakeCase;
use crate::testing::sweep::{Outcome, Target, refusal};

pub use crate::language::{Own, Owned};

/// WGSL that kernels of other crates may take as a part.
pub mod wgsl {
    /// `workgroup_number(id, extents)`: the number of a workgroup in a grid of two dimensions.
    pub const GRID: (&str, &str) = ("shared/grid.wgsl", wgsl!("shared/grid.wgsl"));
    /// `reduce_add(value, lid)` and `reduce_max(value, lid)` over a workgroup of `WG` threads.
    pub const REDUCE: (&str, &str) = ("shared/reduce.wgsl", wgsl!("shared/reduce.wgsl"));
}

/// Runs `wanted` cases of every shader of a kernel that the device can run, every second one with
/// small limits, and compares each with its oracle. Returns the worst outcome of each shader.
///
/// # Errors
/// Errors of either executor.
///
/// # Panics
/// When a shader is no WGSL, or when the cases do not reach it.
pub fn sweep(
    kernel: &'static Kernel,
    make: MakeCase,
    device: &Device,
    wanted: usize,
) -> Result<Vec<(Shader, Outcome)>, Error> {
    let caps = device.caps();
    let shaders = kernel.variants.iter().filter(|variant| variant.fits(caps));
    let shaders = shaders.flat_map(|variant| Shader::all(variant, &[0, caps.subgroup_threads()]));
    let mut outcomes = vec![];
    for shader in shaders {
        if let Some(error) = refusal(&shader) {
            panic!("{}: {error}", shader.label());
        }
        let target = Target { shader, stem: kernel.name, make };
        let (worst, _) = block_on(target.worst_async(device, 0, 0, wanted))?;
        outcomes.push((target.shader, worst));
    }
    Ok(outcomes)
}
