// The part of a row that the j-th of neighbouring threads has. In rows of a multiple of 256
// columns, eight threads share eight blocks, so that together they load 128 neighbouring bytes. In
// other rows each thread has a block.
fn W_lane_halves(k: u32, j: u32) -> vec2<u32> {
    let together = (k & 255u) == 0u; //~ free: off by one
    let low = select(2u * j, 2u * j - (j & 7u), together);
    return vec2<u32>(low, low + select(1u, 8u, together));
}

fn W_lane_unit(row: u32, k: u32, j: u32) -> Unit {
    let halves = W_lane_halves(k, j);
    let scales = row + (k >> 5u) * 8u;
    let scale = vec2<f32>(W_half(scales, halves.x >> 1u), W_half(scales, halves.y >> 1u));
    return Unit(W[(row >> 2u) + halves.x], W[(row >> 2u) + halves.y], scale, vec2<f32>(0.0));
}

// Q8_0 has no minimum to subtract.
fn W_lane_dot(w: Unit, a: Acts) -> f32 {
    return dot(w.scale * a.scale, vec2<f32>(dot_16(w.low, a.low), dot_16(w.high, a.high)));
}

// The products of these parts of two rows with the activations, and the share of the activations.
// Both rows are loaded before either is used. The functions above load all data of the activations;
// with them a token takes 3% longer.
fn W_steps(k: u32) -> u32 {
    return k >> 5u;
}

fn W_step(first: u32, second: u32, k: u32, j: u32, at: vec2<u32>) -> vec3<f32> {
    let together = (k & 255u) == 0u; //~ free: off by one
    let low = select(2u * j, 2u * j - (j & 7u), together);
    let high = low + select(1u, 8u, together);
    let blocks = vec2<u32>(low, high) >> vec2<u32>(1u);
    let scales = (k >> 5u) * 8u;
    let a_low = W[(first >> 2u) + low];
    let a_high = W[(first >> 2u) + high];
    let b_low = W[(second >> 2u) + low];
    let b_high = W[(second >> 2u) + high];
    let a_scale = vec2<f32>(W_half(first + scales, blocks.x), W_half(first + scales, blocks.y));
    let b_scale = vec2<f32>(W_half(second + scales, blocks.x), W_half(second + scales, blocks.y));
    let x_low = x[at.x + low];
    let x_high = x[at.x + high];
    let of_low = bitcast<vec4<f32>>(x[at.y + blocks.x]);
    let of_high = bitcast<vec4<f32>>(x[at.y + blocks.y]);
    let scale = vec2<f32>(of_low.x, of_high.x);
    let a = dot(a_scale * scale, vec2<f32>(dot_16(a_low, x_low), dot_16(a_high, x_high)));
    let b = dot(b_scale * scale, vec2<f32>(dot_16(b_low, x_low), dot_16(b_high, x_high)));
    return vec3<f32>(a, b, 0.5 * (of_low.w + of_high.w));
}
