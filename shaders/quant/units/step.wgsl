// The products of unit j of two rows with the activations, and the share of these; both rows are loaded before either is used.
fn W_steps(k: u32) -> u32 {
    return k >> 5u;
}

fn W_step(first: u32, second: u32, k: u32, j: u32) -> vec3<f32> {
    let a = W_unit(first, k, j);
    let b = W_unit(second, k, j);
    let acts = acts_load(0u, k, W_halves(j));
    return vec3<f32>(dot_unit(a, acts), dot_unit(b, acts), acts.share);
}
