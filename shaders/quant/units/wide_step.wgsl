// The products of the 64 elements from 64 j on of two rows with the activations, and the share of
// the activations. Both rows are loaded before either is used.
struct W_Acts { low: vec4<u32>, more_low: vec4<u32>, high: vec4<u32>, more_high: vec4<u32>, of_low: vec4<f32>, of_high: vec4<f32> }

fn W_dot_32(a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32>) -> f32 {
    let first = dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
    return f32(first + dot4I8Packed(c.x, d.x) + dot4I8Packed(c.y, d.y) + dot4I8Packed(c.z, d.z) + dot4I8Packed(c.w, d.w));
}

fn W_dot_wide(w: W_Wide, acts: W_Acts) -> f32 {
    let low = W_dot_32(W_wide_low(w.q, w.bits, w.n), acts.low, W_wide_low(w.more_q, w.more_bits, w.n), acts.more_low);
    let high = W_dot_32(W_wide_high(w.q, w.bits, w.n), acts.high, W_wide_high(w.more_q, w.more_bits, w.n), acts.more_high);
    let products = w.scale_mins.x * acts.of_low.x * low + w.scale_mins.y * acts.of_high.x * high;
    return products - w.scale_mins.z * (acts.of_low.y + acts.of_low.z) - w.scale_mins.w * (acts.of_high.y + acts.of_high.z);
}

fn W_steps(k: u32) -> u32 {
    return k >> 6u;
}

fn W_step(first: u32, second: u32, k: u32, j: u32, at: vec2<u32>) -> vec3<f32> {
    let a = W_wide(first, j);
    let b = W_wide(second, j);
    let quants = at.x + 4u * j;
    let block = at.y + 2u * j;
    let of_low = bitcast<vec4<f32>>(x[block]);
    let of_high = bitcast<vec4<f32>>(x[block + 1u]);
    let acts = W_Acts(x[quants], x[quants + 1u], x[quants + 2u], x[quants + 3u], of_low, of_high);
    return vec3<f32>(W_dot_wide(a, acts), W_dot_wide(b, acts), of_low.w + of_high.w);
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
