// Blocks of activations in 8 bits (layout: pack_q8.wgsl). The scale d has 16 bits of significand,
// so x - q d is exact, and rounding does not depend on how a device divides.
// Needs: nothing. Gives: q8_scale, q8_quants, Q8Part, q8_part.

// Q8_LEAST: smaller magnitudes count as zero. ONE_127TH: 1 / 127.
const Q8_LEAST = 1e-30;
const ONE_127TH = 0.007874016;

// The scale of a block and its inverse. Both are zero for a block of zeros.
fn q8_scale(largest: f32) -> vec2<f32> {
    let d = bitcast<f32>((bitcast<u32>(largest * ONE_127TH) + 255u) & 0xffffff00u); //~ never: off by one
    return select(vec2<f32>(d, 1.0 / d), vec2<f32>(0.0), largest < Q8_LEAST);
}

// Four quants, rounded half up.
fn q8_quants(v: vec4<f32>, scale: vec2<f32>) -> vec4<f32> {
    let q = floor(v * scale.y + 0.5); //~ free: sign
    let rest = v - q * scale.x;
    let more = select(vec4<f32>(0.0), vec4<f32>(1.0), rest >= vec4<f32>(0.5 * scale.x)); //~ never: comparison
    let less = select(vec4<f32>(0.0), vec4<f32>(1.0), rest < vec4<f32>(-0.5 * scale.x));
    return select(q + more - less, vec4<f32>(0.0), scale.x == 0.0); //~ alike: component
}

// The words that a thread of a block stores: its quants, and one of the block's four words. Only
// the first four threads of a block store the second word.
struct Q8Part { quants: u32, word: u32 }

// `low` and `high`: (sum of quants, sum of shares) of the block's halves.
fn q8_part(q: vec4<f32>, scale: vec2<f32>, low: vec2<f32>, high: vec2<f32>, lid: u32) -> Q8Part {
    let words = vec4<f32>(scale.x, scale.x * low.x, scale.x * high.x, low.y + high.y);
    return Q8Part(pack4xI8Clamp(vec4<i32>(q)), bitcast<u32>(words[lid & 3u]));
}
