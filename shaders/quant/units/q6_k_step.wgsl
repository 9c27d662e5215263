// The products of 64 elements of two rows with the activations, and half of the share of their four
// blocks, because each block is read twice. The 64 elements are two units that share their upper
// bits. Both rows are loaded before either is used.
struct W_Pair { q: vec4<u32>, more_q: vec4<u32>, bits: vec4<u32>, scale: vec4<f32> }

fn W_pair(row: u32, k: u32, half: u32, odd: u32) -> W_Pair {
    let nb = k >> 8u;
    let start = (row >> 2u) + odd;
    let at = row + nb * 48u + 2u * half;
    let scales = vec2<i32>(bitcast<i32>(W_word(at)), bitcast<i32>(W_word(at + 1u)));
    let scale = vec4<i32>(scales << vec2<u32>(24u - 8u * odd), scales << vec2<u32>(8u - 8u * odd)) >> vec4<u32>(24u);
    let d = W_half(row + nb * 52u, half >> 1u);
    return W_Pair(W[start + 4u * half], W[start + 4u * half + 2u], W[start + nb * 8u + 2u * half], d * vec4<f32>(scale));
}

fn W_dot_16(quants: vec4<u32>, acts: vec4<u32>) -> f32 {
    let q = W_signed(quants);
    return f32(dot4I8Packed(q.x, acts.x) + dot4I8Packed(q.y, acts.y) + dot4I8Packed(q.z, acts.z) + dot4I8Packed(q.w, acts.w));
}

fn W_dot_pair(w: W_Pair, a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32>, scale: vec4<f32>) -> f32 {
    let nibble = vec4<u32>(0x0f0f0f0fu);
    let first = (w.q & nibble) | ((w.bits & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
    let second = ((w.q >> vec4<u32>(4u)) & nibble) | (w.bits & vec4<u32>(0x30303030u));
    let third = (w.more_q & nibble) | ((w.bits & vec4<u32>(0x0c0c0c0cu)) << vec4<u32>(2u));
    let fourth = ((w.more_q >> vec4<u32>(4u)) & nibble) | ((w.bits & vec4<u32>(0xc0c0c0c0u)) >> vec4<u32>(2u));
    return dot(w.scale * scale, vec4<f32>(W_dot_16(first, a), W_dot_16(second, b), W_dot_16(third, c), W_dot_16(fourth, d)));
}

fn W_steps(k: u32) -> u32 {
    return k >> 6u;
}

fn W_step(first: u32, second: u32, k: u32, j: u32, at: vec2<u32>) -> vec3<f32> {
    let half = j >> 1u;
    let odd = j & 1u;
    let v = W_pair(first, k, half, odd);
    let w = W_pair(second, k, half, odd);
    let quants = at.x + 8u * half + odd;
    let block = at.y + 4u * half;
    let of_a = bitcast<vec4<f32>>(x[block]);
    let of_b = bitcast<vec4<f32>>(x[block + 2u]);
    let of_c = bitcast<vec4<f32>>(x[block + 1u]);
    let of_d = bitcast<vec4<f32>>(x[block + 3u]);
    let scale = vec4<f32>(of_a.x, of_b.x, of_c.x, of_d.x);
    let a = x[quants];
    let b = x[quants + 4u];
    let c = x[quants + 2u];
    let d = x[quants + 6u];
    return vec3<f32>(W_dot_pair(v, a, b, c, d, scale), W_dot_pair(w, a, b, c, d, scale), 0.5 * (of_a.w + of_b.w + of_c.w + of_d.w));
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
