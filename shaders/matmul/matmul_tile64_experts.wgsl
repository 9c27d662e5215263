// y[s, r] = sum_k w[experts[s] * stride + first + r, k] x[s / per, k] for every slot s (a row of
// the step and one of its choices), with cooperative matrices of f16 and f32 sums
// x [T k / per, k] f16, `heads` of its rows divided by one of scales [T] f32 (pack_f16.wgsl), w
// [row_count, k] (rows row_base.. of all experts' rows), k a multiple of 32, slots [T k] u32 and
// tiles [M, 3] u32 of group_experts.wgsl, y [T k, n] f32. One workgroup makes a tile of 64 or 128
// slots (4 or 8 BANDS) of one expert by 128 rows. It loads 32 columns of both operands while its
// four subgroups multiply the 32 columns before them. Each subgroup makes 4 x 2 matrices of 16 x 16
// results, or 4 x 4 of every second band, but only the bands that the tile has. Each matrix is a
// variable, because an array of matrices would not stay in registers. tile128_quads.wgsl and
// tile128_groups.wgsl dequantize. Results of rows in other parts of w are not written.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, stride: u32, first: u32, per: u32, heads: u32, row_base: u32, row_count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> slots: array<u32>;
@group(0) @binding(5) var<storage, read> tiles: array<u32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

const BAND = 16u;
// A subgroup has every EVERY-th band, and 2 EVERY matrices of each of its bands.
const EVERY = BANDS / 4u;
// Rows of weights between the first and the third matrix of a band.
const BEHIND = 32u * (EVERY - 1u);
const WEIGHT_ROWS = 128u;
const DEPTH = 32u;
const QUADS = DEPTH / 4u;
// Row pitch of the tiles in eights of columns (PITCH) and in vectors of four (ROW). PITCH is odd,
// so that eight rows start on different banks.
const PITCH = DEPTH / 8u + 1u;
const ROW = 2u * PITCH;
var<workgroup> xs: array<vec4<f16>, BANDS * BAND * ROW>;
var<workgroup> ws: array<mat2x4<f16>, WEIGHT_ROWS * PITCH>;
// 16 x 16 results of each subgroup.
var<workgroup> ys: array<f32, 1024>;

// A slot of the staged weights is a row. Rows that are in other parts of w are replaced by row 0.
fn slot_row(first: u32, slot: u32) -> u32 {
    return select(0u, first + slot, first + slot < params.row_count);
}

fn slot_column(k0: u32, slot: u32) -> u32 {
    return k0;
}

fn slot_at(slot: u32) -> u32 {
    return slot * PITCH;
}

fn slot_live(k0: u32, slot: u32) -> bool {
    return true;
}

@compute @workgroup_size(128)
fn matmul_tile64_experts(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let place = tiles[3u * id.y + 1u];
    let count = tiles[3u * id.y + 2u];
    // `top`: first row of this tile within the expert. `local`: the same row within this part of w.
    // Rows before this part wrap around to large numbers.
    let top = id.x * WEIGHT_ROWS;
    let local = tiles[3u * id.y] * params.stride + params.first + top - params.row_base;
    // Operators that leave out their right side would be another branch.
    if ((count == 0u) | ((local >= params.row_count) & (local + WEIGHT_ROWS > local))) {
        return;
    }
    let k = params.k;
    let bands = (count + BAND - 1u) / BAND;
    let row = lid >> 3u;
    let quad = lid & 7u;
    let own = subgroup % EVERY;
    let n0 = subgroup / EVERY * (32u * EVERY);
    var x_at: array<u32, BANDS>;
    var xv: array<vec4<f16>, BANDS>;
    for (var b = 0u; b < BANDS; b++) {
        x_at[b] = slots[place + min(BAND * b + row, count - 1u)] / params.per * (k >> 2u) + quad;
        if (b < bands) {
            xv[b] = x[x_at[b]];
        }
    }
    var ahead = ahead_load(local, k, 0u, lid);
    var c00 = coop_mat16x16<f32, C>();
    var c01 = coop_mat16x16<f32, C>();
    var c02 = coop_mat16x16<f32, C>();
    var c03 = coop_mat16x16<f32, C>();
    var c10 = coop_mat16x16<f32, C>();
    var c11 = coop_mat16x16<f32, C>();
    var c12 = coop_mat16x16<f32, C>();
    var c13 = coop_mat16x16<f32, C>();
    var c20 = coop_mat16x16<f32, C>();
    var c21 = coop_mat16x16<f32, C>();
    var c22 = coop_mat16x16<f32, C>();
    var c23 = coop_mat16x16<f32, C>();
    var c30 = coop_mat16x16<f32, C>();
    var c31 = coop_mat16x16<f32, C>();
    var c32 = coop_mat16x16<f32, C>();
    var c33 = coop_mat16x16<f32, C>();
    for (var k0 = 0u; k0 < k; k0 += DEPTH) {
        workgroupBarrier();
        for (var b = 0u; b < BANDS; b++) {
            xs[(BAND * b + row) * ROW + quad] = xv[b];
        }
        ahead_store(ahead, k0, lid);
        workgroupBarrier();
        let next = min(k0 + DEPTH, k - DEPTH);
        for (var b = 0u; b < BANDS; b++) {
            if (b < bands) {
                xv[b] = x[x_at[b] + (next >> 2u)];
            }
        }
        ahead = ahead_load(local, k, next, lid);
        for (var q = 0u; q < QUADS; q += 4u) {
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&ws[n0 * PITCH + q / 2u][0], ROW);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&ws[(n0 + 16u) * PITCH + q / 2u][0], ROW);
            let b2 = coopLoad<coop_mat16x16<f16, B>>(&ws[(n0 + BEHIND) * PITCH + q / 2u][0], ROW);
            let b3 = coopLoad<coop_mat16x16<f16, B>>(&ws[(n0 + BEHIND + 16u) * PITCH + q / 2u][0], ROW);
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&xs[own * BAND * ROW + q], ROW);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c01 = coopMultiplyAdd(a0, b1, c01);
            if (EVERY > 1u) {
                c02 = coopMultiplyAdd(a0, b2, c02);
                c03 = coopMultiplyAdd(a0, b3, c03);
            }
            if (bands > EVERY) {
                let a1 = coopLoadT<coop_mat16x16<f16, A>>(&xs[(own + EVERY) * BAND * ROW + q], ROW);
                c10 = coopMultiplyAdd(a1, b0, c10);
                c11 = coopMultiplyAdd(a1, b1, c11);
                if (EVERY > 1u) {
                    c12 = coopMultiplyAdd(a1, b2, c12);
                    c13 = coopMultiplyAdd(a1, b3, c13);
                }
            }
            if (bands > 2u * EVERY) {
                let a2 = coopLoadT<coop_mat16x16<f16, A>>(&xs[(own + 2u * EVERY) * BAND * ROW + q], ROW);
                let a3 = coopLoadT<coop_mat16x16<f16, A>>(&xs[(own + 3u * EVERY) * BAND * ROW + q], ROW);
                c20 = coopMultiplyAdd(a2, b0, c20);
                c21 = coopMultiplyAdd(a2, b1, c21);
                c30 = coopMultiplyAdd(a3, b0, c30);
                c31 = coopMultiplyAdd(a3, b1, c31);
                if (EVERY > 1u) {
                    c22 = coopMultiplyAdd(a2, b2, c22);
                    c23 = coopMultiplyAdd(a2, b3, c23);
                    c32 = coopMultiplyAdd(a3, b2, c32);
                    c33 = coopMultiplyAdd(a3, b3, c33);
                }
            }
        }
    }
    let tile = Tile(place, count, top + n0, local + n0);
    let base = subgroup * 256u;
    let lane = lid & 31u;
    let pitch = 16u;
    let v00 = c00;
    coopStoreT(v00, &ys[base], pitch);
    finish(tile, own * BAND, 0u, base, lane);
    let v01 = c01;
    coopStoreT(v01, &ys[base], pitch);
    finish(tile, own * BAND, 16u, base, lane);
    if (EVERY > 1u) {
        let v02 = c02;
        coopStoreT(v02, &ys[base], pitch);
        finish(tile, own * BAND, 32u, base, lane);
        let v03 = c03;
        coopStoreT(v03, &ys[base], pitch);
        finish(tile, own * BAND, 48u, base, lane);
    }
    let v10 = c10;
    coopStoreT(v10, &ys[base], pitch);
    finish(tile, (own + EVERY) * BAND, 0u, base, lane);
    let v11 = c11;
    coopStoreT(v11, &ys[base], pitch);
    finish(tile, (own + EVERY) * BAND, 16u, base, lane);
    if (EVERY > 1u) {
        let v12 = c12;
        coopStoreT(v12, &ys[base], pitch);
        finish(tile, (own + EVERY) * BAND, 32u, base, lane);
        let v13 = c13;
        coopStoreT(v13, &ys[base], pitch);
        finish(tile, (own + EVERY) * BAND, 48u, base, lane);
    }
    let v20 = c20;
    coopStoreT(v20, &ys[base], pitch);
    finish(tile, (own + 2u * EVERY) * BAND, 0u, base, lane);
    let v21 = c21;
    coopStoreT(v21, &ys[base], pitch);
    finish(tile, (own + 2u * EVERY) * BAND, 16u, base, lane);
    if (EVERY > 1u) {
        let v22 = c22;
        coopStoreT(v22, &ys[base], pitch);
        finish(tile, (own + 2u * EVERY) * BAND, 32u, base, lane);
        let v23 = c23;
        coopStoreT(v23, &ys[base], pitch);
        finish(tile, (own + 2u * EVERY) * BAND, 48u, base, lane);
    }
    let v30 = c30;
    coopStoreT(v30, &ys[base], pitch);
    finish(tile, (own + 3u * EVERY) * BAND, 0u, base, lane);
    let v31 = c31;
    coopStoreT(v31, &ys[base], pitch);
    finish(tile, (own + 3u * EVERY) * BAND, 16u, base, lane);
    if (EVERY > 1u) {
        let v32 = c32;
        coopStoreT(v32, &ys[base], pitch);
        finish(tile, (own + 3u * EVERY) * BAND, 32u, base, lane);
        let v33 = c33;
        coopStoreT(v33, &ys[base], pitch);
        finish(tile, (own + 3u * EVERY) * BAND, 48u, base, lane);
    }
}

// The slots of a tile, and the first row of a subgroup within the expert and within this part of w.
struct Tile { place: u32, count: u32, top: u32, local: u32 }

// Writes the 16 x 16 results that a subgroup left at ys[base..]: slots t0.. by rows r0.. of the
// tile.
fn finish(tile: Tile, t0: u32, r0: u32, base: u32, lane: u32) {
    subgroupBarrier();
    for (var i = lane; i < 256u; i += 32u) {
        let t = t0 + (i >> 4u);
        let r = r0 + (i & 15u);
        if (t < tile.count && tile.local + r < params.row_count && tile.top + r < params.n) {
            let slot = slots[tile.place + t];
            y[slot * params.n + tile.top + r] = ys[base + i] * scales[slot / params.per / params.heads];
        }
    }
    subgroupBarrier();
}
