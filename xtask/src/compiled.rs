//! Shaders with constants in place of params, as the plans of sessions have them. Compilers see
//! more in them than in shaders that read their params: a division by zero, an index past an end.

use kernels::Caps;
use kernels::testing::cases;
use kernels::testing::kernel::compose::Shader;
use kernels::testing::kernel::random::Gen;
use std::collections::HashSet;

/// Seeds of each operation's parity cases.
const SEEDS: u64 = 16;

/// Devices of every kind, by name, and one with small bindings. Plans need no real device.
pub fn kinds() -> [(&'static str, Caps); 5] {
    let [webgpu, small, large, cooperative] = kernels::testing::kinds::kinds();
    let split = Caps { max_binding_bytes: 1 << 20, ..cooperative.clone() };
    [
        ("webgpu", webgpu),
        ("subgroups of 8", small),
        ("subgroups of 32", large),
        ("cooperative", cooperative),
        ("small bindings", split),
    ]
}

/// The shaders with constants of the plans of all cases, if the name of their variant contains
/// `kernel`. A composed shader has two forms: with the constants of its plan, and with only those
/// that its kernel has in plans of many rows.
pub fn shaders(kernel: &str) -> Vec<Shader> {
    let (mut all, mut known) = (vec![], HashSet::new());
    let cases =
        cases().into_iter().flat_map(|(_, make)| (0..SEEDS).map(move |seed| make(&mut Gen::new(seed)).compiled()));
    for case in cases {
        // A device with small bindings may refuse a case.
        let plans = kinds().into_iter().filter_map(|(_, caps)| case.planned(&caps, false).ok());
        let shaders = plans.flat_map(|planned| planned.dispatches).map(|placed| placed.shader);
        for shader in shaders.filter(|shader| shader.variant.name.contains(kernel)) {
            let of = shader.variant.kernel;
            let many = of
                .params
                .iter()
                .zip(&shader.given)
                .map(|((field, _), word)| word.filter(|_| of.constants.contains(field)));
            let many = Shader { given: many.collect(), ..shader.clone() };
            for shader in [shader, many] {
                let read: Vec<bool> = shader.given.iter().map(Option::is_none).collect();
                if read.contains(&false) && known.insert((Shader { given: vec![], ..shader.clone() }, read)) {
                    all.push(shader);
                }
            }
        }
    }
    all
}
