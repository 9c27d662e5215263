// halves[t, r] = activation(sum_k w[r, k] x[t, k]) sum_k up[r, k] x[t, k] / tops[t, r / 32] in f16,
// with cooperative matrices of f16
// x [rows, k] f16 divided by scales [rows] f32 (pack_f16.wgsl), w, up [n, k] of one format with
// units, k a multiple of 32 and n of 64, tops [rows, n / 32] f32, halves [rows, n / 2] words.
// activation is silu or gelu (tanh form). Works like matmul_tile128.wgsl, but the 128 columns are
// 64 of each weight. A subgroup makes 64 rows by 32 columns of each weight, so its registers hold
// both products of a result. No workgroup knows the largest element of a row. Therefore every 32
// columns have a power of two as their scale, 0 where all are 0. Few scales differ within a row;
// level_f16.wgsl brings them to one.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> tops: array<f32>;
@group(0) @binding(6) var<storage, read_write> halves: array<vec2<u32>>;

const TILE = 128u;
const COLUMNS = TILE / 2u;
const DEPTH = 32u;
const QUADS = DEPTH / 4u;
// Row pitch of the tiles in vectors of four, padded so that rows start on different banks.
const PITCH = QUADS + 2u;
var<workgroup> xs: array<vec4<f16>, TILE * PITCH>;
var<workgroup> ws: array<vec4<f16>, TILE * PITCH>;
// 16 x 16 results of each subgroup.
var<workgroup> ys: array<f32, 1024>;

// A slot of the staged weights is a row of either weight.
fn slot_column(k0: u32, slot: u32) -> u32 {
    return k0;
}

// The upper half of the workgroup reads `up`. Its rows start at the same places as the rows of w.
fn ahead_load(row: u32, k: u32, k0: u32, lid: u32) -> Ahead {
    if (lid >= COLUMNS) {
        return up_raw(row, k, k0 >> 4u);
    }
    return w_raw(row, k, k0 >> 4u);
}

fn result_quad(at: u32) -> vec4<f32> {
    return vec4<f32>(ys[at], ys[at + 1u], ys[at + 2u], ys[at + 3u]);
}

// A lane's two quads of the 16 x 16 results that its subgroup left at ys[base..]: in row lane / 4
// and in the row 8 further.
fn taken(base: u32, lane: u32) -> mat2x4<f32> {
    subgroupBarrier();
    let quads = mat2x4<f32>(result_quad(base + 4u * lane), result_quad(base + 128u + 4u * lane));
    subgroupBarrier();
    return quads;
}

fn gated(gate: mat2x4<f32>, of_up: mat2x4<f32>, scale: vec2<f32>) -> mat2x4<f32> {
    return mat2x4<f32>(activation(gate[0] * scale.x) * (of_up[0] * scale.x), activation(gate[1] * scale.y) * (of_up[1] * scale.y));
}

// Writes the quads at columns r and r + 16 of row t. A lane and its three neighbours have all 32
// columns.
fn finish(t: u32, r: u32, lane: u32, first: vec4<f32>, second: vec4<f32>) {
    let each = max(abs(first), abs(second));
    var most = max(max(each.x, each.y), max(each.z, each.w));
    most = max(most, subgroupShuffleXor(most, 1u));
    most = max(most, subgroupShuffleXor(most, 2u)); //~ alike: off by one
    let top = coarse_scale(most);
    let unit = select(1.0 / top, 0.0, top == 0.0);
    if (t < params.rows) {
        let at = (t * params.n + r) >> 2u;
        halves[at + (lane & 3u)] = halves_of_quad(first * unit);
        halves[at + 4u + (lane & 3u)] = halves_of_quad(second * unit);
        if ((lane & 3u) == 0u) { //~ twice
            tops[at >> 3u] = top;
        }
    }
}

@compute @workgroup_size(128)
fn matmul_tile128_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let k = params.k;
    let row = lid >> 3u;
    let quad = lid & 7u;
    let m0 = (subgroup >> 1u) * 64u;
    let n0 = (subgroup & 1u) * 32u;
    var x_at: array<u32, 8>;
    var xv: array<vec4<f16>, 8>;
    for (var j = 0u; j < 8u; j++) {
        x_at[j] = min(id.y * TILE + row + 16u * j, params.rows - 1u) * (k >> 2u) + quad; //~ unowned: sign
        xv[j] = x[x_at[j]];
    }
    let w_at = w_row(id.x * COLUMNS + lid % COLUMNS, k);
    var ahead = ahead_load(w_at, k, 0u, lid); //~ rounded: off by one
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
    for (var k0 = 0u; k0 < k; k0 += DEPTH) { //~ rounded: off by one
        workgroupBarrier();
        for (var j = 0u; j < 8u; j++) { //~ clamped: comparison
            xs[(row + 16u * j) * PITCH + quad] = xv[j];
        }
        ahead_store(ahead, k0, lid);
        workgroupBarrier();
        let next = min(k0 + DEPTH, k - DEPTH); //~ dropped: sign
        for (var j = 0u; j < 8u; j++) { //~ clamped: comparison
            xv[j] = x[x_at[j] + (next >> 2u)];
        }
        ahead = ahead_load(w_at, k, next, lid);
        for (var q = 0u; q < QUADS; q += 4u) { //~ rounded: off by one
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&xs[(m0 + 0u) * PITCH + q], PITCH);
            let a1 = coopLoadT<coop_mat16x16<f16, A>>(&xs[(m0 + 16u) * PITCH + q], PITCH);
            let a2 = coopLoadT<coop_mat16x16<f16, A>>(&xs[(m0 + 32u) * PITCH + q], PITCH);
            let a3 = coopLoadT<coop_mat16x16<f16, A>>(&xs[(m0 + 48u) * PITCH + q], PITCH);
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&ws[(n0 + 0u) * PITCH + q], PITCH);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c20 = coopMultiplyAdd(a2, b0, c20);
            c30 = coopMultiplyAdd(a3, b0, c30);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&ws[(n0 + 16u) * PITCH + q], PITCH);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c11 = coopMultiplyAdd(a1, b1, c11);
            c21 = coopMultiplyAdd(a2, b1, c21);
            c31 = coopMultiplyAdd(a3, b1, c31);
            let b2 = coopLoad<coop_mat16x16<f16, B>>(&ws[(COLUMNS + n0) * PITCH + q], PITCH);
            c02 = coopMultiplyAdd(a0, b2, c02);
            c12 = coopMultiplyAdd(a1, b2, c12);
            c22 = coopMultiplyAdd(a2, b2, c22);
            c32 = coopMultiplyAdd(a3, b2, c32);
            let b3 = coopLoad<coop_mat16x16<f16, B>>(&ws[(COLUMNS + n0 + 16u) * PITCH + q], PITCH);
            c03 = coopMultiplyAdd(a0, b3, c03);
            c13 = coopMultiplyAdd(a1, b3, c13);
            c23 = coopMultiplyAdd(a2, b3, c23);
            c33 = coopMultiplyAdd(a3, b3, c33);
        }
    }
    let r0 = id.x * COLUMNS + n0;
    let base = subgroup * 256u;
    let lane = lid & 31u;
    let first = id.y * TILE + m0 + (lane >> 2u);
    let pitch = 16u;
    let t0 = first + 0u;
    let s0 = vec2<f32>(scales[min(t0, params.rows - 1u)], scales[min(t0 + 8u, params.rows - 1u)]); //~ unowned: sign
    let v00 = c00;
    coopStoreT(v00, &ys[base], pitch);
    let g00 = taken(base, lane);
    let v02 = c02;
    coopStoreT(v02, &ys[base], pitch);
    let p00 = gated(g00, taken(base, lane), s0);
    let v01 = c01;
    coopStoreT(v01, &ys[base], pitch);
    let g01 = taken(base, lane);
    let v03 = c03;
    coopStoreT(v03, &ys[base], pitch);
    let p01 = gated(g01, taken(base, lane), s0);
    finish(t0, r0, lane, p00[0], p01[0]);
    finish(t0 + 8u, r0, lane, p00[1], p01[1]);
    let t1 = first + 16u;
    let s1 = vec2<f32>(scales[min(t1, params.rows - 1u)], scales[min(t1 + 8u, params.rows - 1u)]); //~ unowned: sign
    let v10 = c10;
    coopStoreT(v10, &ys[base], pitch);
    let g10 = taken(base, lane);
    let v12 = c12;
    coopStoreT(v12, &ys[base], pitch);
    let p10 = gated(g10, taken(base, lane), s1);
    let v11 = c11;
    coopStoreT(v11, &ys[base], pitch);
    let g11 = taken(base, lane);
    let v13 = c13;
    coopStoreT(v13, &ys[base], pitch);
    let p11 = gated(g11, taken(base, lane), s1);
    finish(t1, r0, lane, p10[0], p11[0]);
    finish(t1 + 8u, r0, lane, p10[1], p11[1]);
    let t2 = first + 32u;
    let s2 = vec2<f32>(scales[min(t2, params.rows - 1u)], scales[min(t2 + 8u, params.rows - 1u)]); //~ unowned: sign
    let v20 = c20;
    coopStoreT(v20, &ys[base], pitch);
    let g20 = taken(base, lane);
    let v22 = c22;
    coopStoreT(v22, &ys[base], pitch);
    let p20 = gated(g20, taken(base, lane), s2);
    let v21 = c21;
    coopStoreT(v21, &ys[base], pitch);
    let g21 = taken(base, lane);
    let v23 = c23;
    coopStoreT(v23, &ys[base], pitch);
    let p21 = gated(g21, taken(base, lane), s2);
    finish(t2, r0, lane, p20[0], p21[0]);
    finish(t2 + 8u, r0, lane, p20[1], p21[1]);
    let t3 = first + 48u;
    let s3 = vec2<f32>(scales[min(t3, params.rows - 1u)], scales[min(t3 + 8u, params.rows - 1u)]); //~ unowned: sign
    let v30 = c30;
    coopStoreT(v30, &ys[base], pitch);
    let g30 = taken(base, lane);
    let v32 = c32;
    coopStoreT(v32, &ys[base], pitch);
    let p30 = gated(g30, taken(base, lane), s3);
    let v31 = c31;
    coopStoreT(v31, &ys[base], pitch);
    let g31 = taken(base, lane);
    let v33 = c33;
    coopStoreT(v33, &ys[base], pitch);
    let p31 = gated(g31, taken(base, lane), s3);
    finish(t3, r0, lane, p30[0], p31[0]);
    finish(t3 + 8u, r0, lane, p30[1], p31[1]);
}
