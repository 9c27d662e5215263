// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r], with cooperative matrices of f16
// and f32 sums
// x [rows, k] f16 divided by scales [rows] f32 (pack_f16.wgsl), w [row_count, k], k a multiple of
// 32, bias f32 (if has_bias), y [rows, n] f32. One workgroup makes 128 x 128 results. It loads 32
// columns of both operands while its four subgroups multiply the 32 columns before them. Each
// subgroup makes 64 x 64 results in 4 x 4 matrices. tile128_quads.wgsl and tile128_groups.wgsl
// dequantize. tile128_end.wgsl or tile128_end_quads.wgsl binds bias and y and writes the results.
// Each matrix is a variable, because an array of matrices would not stay in registers.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;

const TILE = 128u;
const DEPTH = 32u;
const QUADS = DEPTH / 4u;
// Row pitch of the tiles in vectors of four, padded so that rows start on different banks.
const PITCH = QUADS + 2u;
var<workgroup> xs: array<vec4<f16>, TILE * PITCH>;
var<workgroup> ws: array<vec4<f16>, TILE * PITCH>;
// 16 x 16 results of each subgroup.
var<workgroup> ys: array<f32, 1024>;

// A slot of the staged weights is a row.
fn slot_row(first: u32, slot: u32) -> u32 {
    return min(first + slot, params.row_count - 1u); //~ unowned: sign
}

fn slot_column(k0: u32, slot: u32) -> u32 {
    return k0;
}

@compute @workgroup_size(128)
fn matmul_tile128(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let k = params.k;
    let row = lid >> 3u;
    let quad = lid & 7u;
    let m0 = (subgroup >> 1u) * 64u;
    let n0 = (subgroup & 1u) * 64u;
    var x_at: array<u32, 8>;
    var xv: array<vec4<f16>, 8>;
    for (var j = 0u; j < 8u; j++) {
        x_at[j] = min(id.y * TILE + row + 16u * j, params.rows - 1u) * (k >> 2u) + quad; //~ unowned: sign
        xv[j] = x[x_at[j]];
    }
    var ahead = ahead_load(id.x * TILE, k, 0u, lid); //~ rounded: off by one
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
        ahead = ahead_load(id.x * TILE, k, next, lid);
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
            let b2 = coopLoad<coop_mat16x16<f16, B>>(&ws[(n0 + 32u) * PITCH + q], PITCH);
            c02 = coopMultiplyAdd(a0, b2, c02);
            c12 = coopMultiplyAdd(a1, b2, c12);
            c22 = coopMultiplyAdd(a2, b2, c22);
            c32 = coopMultiplyAdd(a3, b2, c32);
            let b3 = coopLoad<coop_mat16x16<f16, B>>(&ws[(n0 + 48u) * PITCH + q], PITCH);
            c03 = coopMultiplyAdd(a0, b3, c03);
            c13 = coopMultiplyAdd(a1, b3, c13);
            c23 = coopMultiplyAdd(a2, b3, c23);
            c33 = coopMultiplyAdd(a3, b3, c33);
        }
    }
    let t0 = id.y * TILE + m0;
    let r0 = id.x * TILE + n0;
    let base = subgroup * 256u;
    let lane = lid & 31u;
    let pitch = 16u;
    let v00 = c00;
    coopStoreT(v00, &ys[base], pitch);
    finish(t0 + 0u, r0 + 0u, base, lane);
    let v01 = c01;
    coopStoreT(v01, &ys[base], pitch);
    finish(t0 + 0u, r0 + 16u, base, lane);
    let v02 = c02;
    coopStoreT(v02, &ys[base], pitch);
    finish(t0 + 0u, r0 + 32u, base, lane);
    let v03 = c03;
    coopStoreT(v03, &ys[base], pitch);
    finish(t0 + 0u, r0 + 48u, base, lane);
    let v10 = c10;
    coopStoreT(v10, &ys[base], pitch);
    finish(t0 + 16u, r0 + 0u, base, lane);
    let v11 = c11;
    coopStoreT(v11, &ys[base], pitch);
    finish(t0 + 16u, r0 + 16u, base, lane);
    let v12 = c12;
    coopStoreT(v12, &ys[base], pitch);
    finish(t0 + 16u, r0 + 32u, base, lane);
    let v13 = c13;
    coopStoreT(v13, &ys[base], pitch);
    finish(t0 + 16u, r0 + 48u, base, lane);
    let v20 = c20;
    coopStoreT(v20, &ys[base], pitch);
    finish(t0 + 32u, r0 + 0u, base, lane);
    let v21 = c21;
    coopStoreT(v21, &ys[base], pitch);
    finish(t0 + 32u, r0 + 16u, base, lane);
    let v22 = c22;
    coopStoreT(v22, &ys[base], pitch);
    finish(t0 + 32u, r0 + 32u, base, lane);
    let v23 = c23;
    coopStoreT(v23, &ys[base], pitch);
    finish(t0 + 32u, r0 + 48u, base, lane);
    let v30 = c30;
    coopStoreT(v30, &ys[base], pitch);
    finish(t0 + 48u, r0 + 0u, base, lane);
    let v31 = c31;
    coopStoreT(v31, &ys[base], pitch);
    finish(t0 + 48u, r0 + 16u, base, lane);
    let v32 = c32;
    coopStoreT(v32, &ys[base], pitch);
    finish(t0 + 48u, r0 + 32u, base, lane);
    let v33 = c33;
    coopStoreT(v33, &ys[base], pitch);
    finish(t0 + 48u, r0 + 48u, base, lane);
}
