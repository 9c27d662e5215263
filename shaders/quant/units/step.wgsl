// The products of unit j of two rows with the activations, and the share of the activations. Both
// rows are loaded before either is used.
fn W_steps(k: u32) -> u32 {
    return k >> 5u;
}

fn W_step(first: u32, second: u32, k: u32, j: u32, at: vec2<u32>) -> vec3<f32> {
    let a = W_unit(first, k, j);
    let b = W_unit(second, k, j);
    let acts = acts_load(at, W_halves(j));
    return vec3<f32>(dot_unit(a, acts), dot_unit(b, acts), acts.share);
}

// W_lane_*: the part of a row that the j-th of neighbouring threads has: its halves, its unit, and
// its product.
fn W_lane_halves(k: u32, j: u32) -> vec2<u32> {
    return W_halves(j);
}

fn W_lane_unit(row: u32, k: u32, j: u32) -> Unit {
    return W_unit(row, k, j);
}

fn W_lane_dot(w: Unit, a: Acts) -> f32 {
    return dot_unit(w, a);
}
