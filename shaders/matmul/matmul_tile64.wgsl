// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r], with cooperative matrices of f16
// and f32 sums
// x [k / 16, M, 16] f16, 16 columns of all rows together, M the rows in whole tiles of 16 BANDS,
// divided by scales [rows] f32 (pack_f16.wgsl), w [row_count, k] in a format with units, k a
// multiple of 32, bias f32 (if has_bias), y [rows, n] f32. One workgroup makes 16 BANDS x 16 GROUPS
// results. Each of its PARTS subgroups takes every PARTS-th 4 units of the rows of w; a thread has
// a unit of two rows of each group. The subgroup stages half of them at a time, group after group,
// so fragments of x are loaded once for all groups. Sums of subgroups are added at the end.
// Needs: w_Four, w_held, w_tile64 (the format of w), WG, TILE (tile64_tiles.wgsl), GROUPS (the
// variant). Gives: params.rows, x, rows_of, tile64_store, scales, params.k.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

fn rows_of(which: u32) -> u32 {
    return params.row_count;
}

fn w_four_of(rows: vec4<u32>, k: u32, unit: u32, which: u32) -> w_Four {
    return w_Four(w_held(rows.x, k, unit), w_held(rows.y, k, unit), w_held(rows.z, k, unit), w_held(rows.w, k, unit));
}

fn tile64_store(t: u32, r: u32, which: u32, v: f32) {
    let at = params.row_base + r;
    y[t * params.n + at] = select(v, v + bias[at], params.has_bias == 1u);
}

@compute @workgroup_size(WG)
fn matmul_tile64(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    w_tile64(id.x * (TILE * GROUPS), id.y, 0u, lid, subgroup); //~ unused: off by one
}
