// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r], with cooperative matrices of f16
// and f32 sums
// x [k / 16, slab, 16] f16, 16 columns of all rows together, divided by scales [rows] f32
// (pack_f16.wgsl), slab the rows in whole slabs, w [row_count, k], k a multiple of 32, bias f32 (if
// has_bias), y [rows, n] f32. One workgroup makes 128 x 16 GROUPS results (tile128_loop.wgsl).
// tile128_quads.wgsl and tile128_groups.wgsl dequantize. tile128_end.wgsl, tile128_end_quads.wgsl
// or tile128_pair.wgsl binds y and writes the results.
// Needs: COLUMNS (tile128_slots.wgsl), YMatrix, Band, sums_of (tile128_loop.wgsl), finish (slot end
// or tile128_end.wgsl or tile128_pair.wgsl), GROUPS (the variant). Gives: params.k, x, params.slab,
// slot_row, params.rows, params.row_count, params.row_base, ys, scales, params.n, params.has_bias,
// w. Bindings of pieces: bias, y (tile128_end.wgsl), bias, y (slot end), other, y, other_y
// (tile128_pair.wgsl).
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, rows: u32, slab: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;

const TILE = 128u;
// 16 x 16 results of each subgroup.
var<workgroup> ys: array<f32, 1024>;

fn slot_row(first: u32, slot: u32) -> u32 {
    return min(first + slot % COLUMNS, params.row_count - 1u);
}

fn finish_sums(sums: YMatrix, t0: u32, r0: u32, base: u32, lane: u32) {
    coopStoreT(sums, &ys[base], 16u);
    finish(t0, r0, base, lane);
}

fn finish_band(sums: Band, t0: u32, r0: u32, base: u32, lane: u32) {
    finish_sums(sums.a, t0, r0, base, lane);
    finish_sums(sums.b, t0, r0 + 16u, base, lane);
    finish_sums(sums.c, t0, r0 + 32u, base, lane);
    finish_sums(sums.d, t0, r0 + 48u, base, lane);
    if (GROUPS > 4u) { //~ race: comparison, guard dropped
        finish_sums(sums.e, t0, r0 + 64u, base, lane);
        finish_sums(sums.f, t0, r0 + 80u, base, lane);
        finish_sums(sums.g, t0, r0 + 96u, base, lane);
        finish_sums(sums.h, t0, r0 + 112u, base, lane);
    }
}

@compute @workgroup_size(128)
fn matmul_tile128(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let r0 = id.x * COLUMNS;
    let t0 = id.y * TILE + 32u * subgroup;
    let sums = sums_of(r0, t0, lid);
    let base = subgroup * 256u;
    let lane = lid & 31u;
    finish_band(sums.t0, t0, r0, base, lane);
    finish_band(sums.t1, t0 + 16u, r0, base, lane);
}
