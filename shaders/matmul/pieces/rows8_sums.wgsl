// Sums of products of up to 8 rows (matmul_rows8.wgsl) in workgroup memory, and their blocks of
// activations. A lane has one block of 32 at a time.
// Needs: TEAM, TEAMS, MOST, STEPS, acts_place, x, Unit, PAIRS. Gives: Act, WG, PARTS, act_load,
// dot_block, rows_bit, steps_bit, in_pairs, held_order, rows8_add, rows8_add_share, rows8_result,
// acts_factor.

// A block of 32 activations of one row, and their sum. `low` is the half that the lane uses first.
struct Act { low: vec4<u32>, high: vec4<u32>, scale: f32, sum: f32, share: f32 }

// TEAM threads share rows of weights. Each of TEAMS such teams has rows of its own.
const WG = TEAM * TEAMS;
const PARTS = TEAM / 32u;
// For every 32 lanes of a team: STEPS sums of every row of the workgroup's weights (at most MOST),
// and the shares of the rows of activations.
var<workgroup> rows8_partial: array<f32, PARTS * MOST * STEPS>;
var<workgroup> rows8_shares: array<f32, PARTS * STEPS>;

// `live` is 1, or 0 past the last block.
fn act_load(t: u32, k: u32, block: u32, turn: u32, live: f32) -> Act {
    let at = acts_place(t, k);
    let of_block = live * bitcast<vec4<f32>>(x[at.y + block]);
    let low = x[at.x + 2u * block + turn]; //~ apart: sign
    let high = x[at.x + 2u * block + (turn ^ 1u)];
    return Act(low, high, of_block.x, of_block.y + of_block.z, of_block.w);
}

fn dots_16(a: vec4<u32>, b: vec4<u32>) -> i32 {
    return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w);
}

// `alike`: the block has one scale and one minimum. Otherwise it has two scales.
fn dot_block(w: Unit, a: Act, alike: bool) -> f32 {
    let low = dots_16(w.low, a.low);
    let high = dots_16(w.high, a.high);
    if (alike) {
        return fma(w.scale.x, a.scale * f32(low + high), -w.least.x * a.sum); //~ alike: component
    }
    return a.scale * dot(w.scale, vec2<f32>(f32(low), f32(high)));
}

// 32 lanes end with one sum each, for four rows of weights by STEPS rows of activations. Some bits
// of a lane's number are the number of its first row of weights. The other rows follow by exclusive
// or with it, so lanes that exchange sums need no select. If lanes `near` each other share loads of
// a row, these are the lowest bits. Otherwise they are higher bits, so that neighbours load
// neighbouring data.
fn rows_bit(near: bool) -> u32 {
    return select(STEPS, 1u, near); //~ apart: off by one
}

// The lowest of the bits that select the row of activations of a lane's final sum.
fn steps_bit(near: bool) -> u32 {
    return select(1u, 4u, near); //~ apart: off by one
}

// Whether rows of weights are taken two at a time instead of four.
fn in_pairs(near: bool) -> bool {
    return near && PAIRS;
}

fn held_order(near: bool, lid: u32) -> u32 {
    return (lid / rows_bit(near)) & select(3u, 1u, in_pairs(near)); //~ apart: off by one
}

fn held_step(near: bool, lid: u32) -> u32 {
    return (lid / steps_bit(near)) & (STEPS - 1u); //~ apart: product
}

// Whether a lane is the first of the lanes with the same sum.
fn held_first(near: bool, lid: u32) -> bool {
    return (lid & 31u) < 4u * STEPS && (!in_pairs(near) || (lid & 2u) == 0u); //~ race: comparison, mask, off by one
}

// Adds a lane's sum to the sums of the blocks before `first`. The sum is of the lane's row of
// activations and of row r + held_order of the workgroup's weights.
fn rows8_add(first: u32, r: u32, sum: f32, near: bool, lid: u32) {
    let at = (((lid % TEAM) >> 5u) * MOST + r + held_order(near, lid)) * STEPS + held_step(near, lid);
    if (held_first(near, lid)) { //~ race: guard dropped
        rows8_partial[at] = select(rows8_partial[at], 0.0, first == 0u) + sum;
    }
}

fn rows8_add_share(first: u32, share: f32, near: bool, lid: u32) {
    let at = (lid >> 5u) * STEPS + held_step(near, lid);
    // All teams have the same shares.
    if (lid < TEAM && held_first(near, lid) && held_order(near, lid) == 0u) { //~ alike: off by one; race: guard dropped
        rows8_shares[at] = select(rows8_shares[at], 0.0, first == 0u) + share;
    }
}

// The product of row r of the workgroup's weights and row t of its activations, times the norm's
// factor that readers apply, if there is one.
fn rows8_result(r: u32, t: u32) -> f32 {
    var sum = 0.0;
    var share = 0.0;
    for (var part = 0u; part < PARTS; part++) {
        sum += rows8_partial[(part * MOST + r) * STEPS + t];
        share += rows8_shares[part * STEPS + t];
    }
    return sum * acts_factor(share);
}

// 2^-32: shares are sums of squares of values times 2^-32 (norm_share.wgsl).
const SHARES_SIZE = 2.3283064365386963e-10;

// The factor of the norm that readers of a row apply, from the sum of the shares. 1 where there is
// no norm (norm_pack_q8.wgsl).
fn acts_factor(shares: f32) -> f32 {
    return select(SHARES_SIZE * inverseSqrt(shares), 1.0, shares == 0.0);
}
