//! The sweep over a kernel of another crate.

use crate::device::Device;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::kernel::compose::Shader;
use crate::testing::parity::{Case, MakeCase};
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
        let mut seeds = 0..256 * wanted as u64;
        let mut worst: Option<Outcome> = None;
        for n in 0..wanted {
            let (_, case) = target.find(caps, &mut seeds).unwrap_or_else(|| {
                panic!("case {n} of {}: the cases do not reach it", target.shader.label());
            });
            let compare = if n % 2 == 1 { Case::compare_split } else { Case::compare };
            let outcome = compare(&case, device, !target.shader.subgroups)?;
            if worst.as_ref().is_none_or(|worst| outcome.badness() > worst.badness()) {
                worst = Some(outcome);
            }
        }
        outcomes.extend(worst.map(|worst| (target.shader, worst)));
    }
    Ok(outcomes)
}
