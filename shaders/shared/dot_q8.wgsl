// Dot products of weights in units of 32 with activations that pack_q8.wgsl wrote, from the binding `x`.
struct Unit {
    // The quants of the two halves of 16, four to a word, signed.
    low: vec4<u32>,
    high: vec4<u32>,
    // w = scale q - least, by half.
    scale: vec2<f32>,
    least: vec2<f32>,
}

// The activations that one unit of every row meets.
struct Acts {
    low: vec4<u32>,
    high: vec4<u32>,
    scale: vec2<f32>,
    sum: vec2<f32>,
}

// `halves`: which 16 elements of the row `row` the low and the high quants are.
fn acts_load(row: u32, k: u32, halves: vec2<u32>) -> Acts {
    let start = row * (3u * k >> 5u);
    let of_low = bitcast<vec4<f32>>(x[start + (k >> 4u) + (halves.x >> 1u)]);
    let of_high = bitcast<vec4<f32>>(x[start + (k >> 4u) + (halves.y >> 1u)]);
    let sum = vec2<f32>(select(of_low.y, of_low.z, (halves.x & 1u) == 1u), select(of_high.y, of_high.z, (halves.y & 1u) == 1u));
    return Acts(x[start + halves.x], x[start + halves.y], vec2<f32>(of_low.x, of_high.x), sum);
}

fn dot_16(a: vec4<u32>, b: vec4<u32>) -> f32 {
    return f32(dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w));
}

fn dot_unit(w: Unit, a: Acts) -> f32 {
    let dots = vec2<f32>(dot_16(w.low, a.low), dot_16(w.high, a.high));
    return dot(w.scale * a.scale, dots) - dot(w.least, a.sum);
}
