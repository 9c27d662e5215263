// Sums of products of up to 8 rows (matmul_rows8.wgsl) in workgroup memory, and the blocks of activations that they are made of, a block of 32 to a lane.
// Needs: WG, MOST, STEPS, x, Unit, PAIRS. Gives: Act, PARTS, act_load, dot_block, rows_bit, steps_bit, in_pairs, held_order, rows8_add,
// rows8_add_share, rows8_result, acts_factor.

// The 32 activations of one row that one block of a row of weights meets, and their sum; `low` is the half that the lane has first.
struct Act { low: vec4<u32>, high: vec4<u32>, scale: f32, sum: f32, share: f32 }

const PARTS = WG / 32u;
// By subgroup of 32 lanes: STEPS sums of every row of the workgroup's weights (MOST at most), and the shares of the rows of activations.
var<workgroup> rows8_partial: array<f32, PARTS * MOST * STEPS>;
var<workgroup> rows8_shares: array<f32, PARTS * STEPS>;

// Past the last block `live` is 0.
fn act_load(t: u32, k: u32, block: u32, turn: u32, live: f32) -> Act {
    let start = t * (3u * k >> 5u);
    let of_block = live * bitcast<vec4<f32>>(x[start + (k >> 4u) + block]);
    let low = x[start + 2u * block + turn];
    let high = x[start + 2u * block + (turn ^ 1u)];
    return Act(low, high, of_block.x, of_block.y + of_block.z, of_block.w);
}

fn dots_16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

// `alike`: the block has one scale and one minimum; else two scales.
fn dot_block(w: Unit, a: Act, alike: bool) -> f32 {
    let low = dots_16(w.low, a.low);
    let high = dots_16(w.high, a.high);
    if (alike) {
        return fma(w.scale.x, a.scale * f32(low + high), -w.least.x * a.sum); //~ alike: component
    }
    return a.scale * dot(w.scale, vec2<f32>(f32(low), f32(high)));
}

// Of four rows of weights and STEPS of activations 32 lanes end with a sum each. Bits of a lane's number say which row of weights it has first, the
// others by exclusive or with theirs, so that of lanes that exchange sums none has to choose: the lowest bits where lanes `near` each other share
// what they load of a row, else higher ones, so that such lanes load what lies together.
fn rows_bit(near: bool) -> u32 {
    return select(STEPS, 1u, near);
}

// The lowest of the bits that say which row of activations a lane ends with.
fn steps_bit(near: bool) -> u32 {
    return select(1u, 4u, near);
}

// Whether rows of weights are met two at a time instead of four.
fn in_pairs(near: bool) -> bool {
    return near && PAIRS;
}

fn held_order(near: bool, lid: u32) -> u32 {
    return (lid / rows_bit(near)) & select(3u, 1u, in_pairs(near));
}

fn held_step(near: bool, lid: u32) -> u32 {
    return (lid / steps_bit(near)) & (STEPS - 1u);
}

// Whether a lane is the first of those with the same sum.
fn held_first(near: bool, lid: u32) -> bool {
    return (lid & 31u) < 4u * STEPS && (!in_pairs(near) || (lid & 2u) == 0u); //~ race
}

// Adds a lane's own sum, of its own row of activations with the row r + held_order of the workgroup's weights, to those of the blocks before `first`.
fn rows8_add(first: u32, r: u32, sum: f32, near: bool, lid: u32) {
    let at = ((lid >> 5u) * MOST + r + held_order(near, lid)) * STEPS + held_step(near, lid);
    if (held_first(near, lid)) { //~ race: guard dropped
        rows8_partial[at] = select(rows8_partial[at], 0.0, first == 0u) + sum; //~ zeros: off by one
    }
}

fn rows8_add_share(first: u32, share: f32, near: bool, lid: u32) {
    let at = (lid >> 5u) * STEPS + held_step(near, lid);
    if (held_first(near, lid) && held_order(near, lid) == 0u) { //~ alike: off by one; race: guard dropped
        rows8_shares[at] = select(rows8_shares[at], 0.0, first == 0u) + share; //~ zeros: off by one
    }
}

// The product of the row r of the workgroup's weights with the row t of its activations, whose norm's factor may be left to it.
fn rows8_result(r: u32, t: u32) -> f32 {
    var sum = 0.0;
    var share = 0.0;
    for (var part = 0u; part < PARTS; part++) {
        sum += rows8_partial[(part * MOST + r) * STEPS + t];
        share += rows8_shares[part * STEPS + t];
    }
    return sum * acts_factor(share);
}

// 2^-32: shares are of values times that (norm_share.wgsl).
const SHARES_SIZE = 2.3283064365386963e-10;

// The factor of a norm that was left to the reader of its row, by the sum of the shares; 1 where there was none (norm_pack_q8.wgsl).
fn acts_factor(shares: f32) -> f32 {
    return select(SHARES_SIZE * inverseSqrt(shares), 1.0, shares == 0.0);
}
