// Dot products of weights, in units of 32, with activations of pack_q8.wgsl from the binding `x`.
// Needs: x, Unit. Gives: Acts, acts_row, acts_load, dot_16, dot_unit, acts_factor.

// The activations that are multiplied with one unit of a row.
struct Acts {
    low: vec4<u32>,
    high: vec4<u32>,
    scale: vec2<f32>,
    sum: vec2<f32>,
    // Half of the two blocks' shares, because every block is loaded twice.
    share: f32,
}

// Where row `row` begins in x: its quants at .x, in quads; the words of its blocks at .y.
fn acts_row(row: u32, k: u32) -> vec2<u32> {
    let start = row * ((3u * k) >> 5u);
    return vec2<u32>(start, start + (k >> 4u));
}

// `halves`: the numbers of the 16 elements of the row that become the low and the high quants.
// `at`: the offsets of the row in x, from acts_row.
fn acts_load(at: vec2<u32>, halves: vec2<u32>) -> Acts {
    let of_low = bitcast<vec4<f32>>(x[at.y + (halves.x >> 1u)]);
    let of_high = bitcast<vec4<f32>>(x[at.y + (halves.y >> 1u)]);
    let sum = vec2<f32>(select(of_low.y, of_low.z, (halves.x & 1u) == 1u), select(of_high.y, of_high.z, (halves.y & 1u) == 1u));
    return Acts(x[at.x + halves.x], x[at.x + halves.y], vec2<f32>(of_low.x, of_high.x), sum, 0.5 * (of_low.w + of_high.w));
}

fn dot_16(a: vec4<u32>, b: vec4<u32>) -> f32 {
    return f32(dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w));
}

fn dot_unit(w: Unit, a: Acts) -> f32 {
    let dots = vec2<f32>(dot_16(w.low, a.low), dot_16(w.high, a.high));
    return dot(w.scale * a.scale, dots) - dot(w.least, a.sum);
}

// 2^-32: shares are sums of squares of values times 2^-32 (norm_share.wgsl).
const SHARES_SIZE = 2.3283064365386963e-10;

// The factor of the norm that readers of a row apply, from the sum of the shares. 1 where there is
// no norm (norm_pack_q8.wgsl).
fn acts_factor(shares: f32) -> f32 {
    return select(SHARES_SIZE * inverseSqrt(shares), 1.0, shares == 0.0);
}
