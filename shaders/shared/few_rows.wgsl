// Sums of products of few rows in workgroup memory, and the blocks of activations that they are made of, a block of 32 to a lane.
// The 32 activations of one row that one block of a row of weights meets; `sum` of all of them, `less` of the halves' quants, times -32.
struct Act { low: vec4<u32>, high: vec4<u32>, scale: f32, sum: f32, less: vec2<i32>, share: f32 }

const PARTS = WG / 32u;
// By subgroup of 32 lanes: STEPS sums of every row of the workgroup's weights (MOST at most), and the shares of the rows of activations.
var<workgroup> few_sums: array<f32, PARTS * MOST * STEPS>;
var<workgroup> few_shares: array<f32, PARTS * STEPS>;

// Past the last block `live` is 0.
fn act_load(t: u32, k: u32, block: u32, live: f32) -> Act {
    let start = t * (3u * k >> 5u);
    let of_block = live * bitcast<vec4<f32>>(x[start + (k >> 4u) + block]);
    let low = x[start + 2u * block];
    let high = x[start + 2u * block + 1u];
    let ones = vec4<u32>(0x01010101u);
    return Act(low, high, of_block.x, of_block.y + of_block.z, -32 * vec2<i32>(dots_16(low, ones), dots_16(high, ones)), of_block.w);
}

fn dots_16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

// `alike`: the block has one scale and one minimum; else two scales, and its quants are to be 32 less.
fn dot_block(w: Unit, a: Act, alike: bool) -> f32 {
    let low = dots_16(w.low, a.low);
    let high = dots_16(w.high, a.high);
    if (alike) {
        return fma(w.scale.x, a.scale * f32(low + high), -w.least.x * a.sum);
    }
    return a.scale * dot(w.scale, vec2<f32>(f32(low + a.less.x), f32(high + a.less.y)));
}

// Adds a lane's own sum, of the row r + held_order of the workgroup's weights, to those of the blocks before `first`.
fn few_add(first: u32, r: u32, sum: f32, lid: u32) {
    let own = lid & (4u * STEPS - 1u);
    let at = ((lid >> 5u) * MOST + r) * STEPS + own;
    if (own == (lid & 31u)) {
        few_sums[at] = select(few_sums[at], 0.0, first == 0u) + sum;
    }
}

fn few_add_share(first: u32, share: f32, lid: u32) {
    let own = lid & 31u;
    let at = (lid >> 5u) * STEPS + own;
    if (own < STEPS) {
        few_shares[at] = select(few_shares[at], 0.0, first == 0u) + share;
    }
}

// The product of the row r of the workgroup's weights with the row t of its activations, whose norm's factor may be left to it.
fn few_result(r: u32, t: u32) -> f32 {
    var sum = 0.0;
    var share = 0.0;
    for (var part = 0u; part < PARTS; part++) {
        sum += few_sums[(part * MOST + r) * STEPS + t];
        share += few_shares[part * STEPS + t];
    }
    return sum * acts_factor(share);
}

// The factor of a norm that was left to the reader of its row, by the sum of the shares; 1 where there was none (norm_pack_q8.wgsl).
fn acts_factor(shares: f32) -> f32 {
    return select(2.3283064365386963e-10 * inverseSqrt(shares), 1.0, shares == 0.0);
}
