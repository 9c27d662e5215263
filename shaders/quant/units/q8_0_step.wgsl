// What the j-th of neighbouring threads takes of a row: in rows of whole 256 columns eight of them share eight blocks, so that what they load
// together is 128 bytes side by side; else each has a block.
fn W_lane_halves(k: u32, j: u32) -> vec2<u32> {
    let together = (k & 255u) == 0u;
    let low = select(2u * j, 2u * j - (j & 7u), together);
    return vec2<u32>(low, low + select(1u, 8u, together));
}

fn W_lane_unit(row: u32, k: u32, j: u32) -> Unit {
    let halves = W_lane_halves(k, j);
    let scales = row + (k >> 5u) * 8u;
    let scale = vec2<f32>(W_half(scales, halves.x >> 1u), W_half(scales, halves.y >> 1u));
    return Unit(W[(row >> 2u) + halves.x], W[(row >> 2u) + halves.y], scale, vec2<f32>(0.0));
}

// Nothing is subtracted.
fn W_lane_dot(w: Unit, a: Acts) -> f32 {
    return dot(w.scale * a.scale, vec2<f32>(dot_16(w.low, a.low), dot_16(w.high, a.high)));
}

// The products of these of two rows with the activations, and the share of these; both rows are loaded before either is used.
fn W_steps(k: u32) -> u32 {
    return k >> 5u;
}

fn W_step(first: u32, second: u32, k: u32, j: u32) -> vec3<f32> {
    let a = W_lane_unit(first, k, j);
    let b = W_lane_unit(second, k, j);
    let acts = acts_load(0u, k, W_lane_halves(k, j));
    return vec3<f32>(W_lane_dot(a, acts), W_lane_dot(b, acts), acts.share);
}
