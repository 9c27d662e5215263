// halves[t, r] = activation(sum_k w[r, k] x[t, k]) sum_k up[r, k] x[t, k] / tops[t, r / 32] in f16,
// with cooperative matrices of f16
// x [k / 16, slab, 16] f16 divided by scales [rows] f32 (pack_f16.wgsl), w, up [n, k] of one format
// with units, k a multiple of 32 and n of 64, tops [rows, n / 32] f32, halves [n / 16, slab, 16]
// f16. activation is silu or gelu (tanh form). Works like matmul_tile128.wgsl, but the 128 rows of
// weights are 64 of each weight, so a subgroup's registers hold both products of a result. No
// workgroup knows the largest element of a row. Therefore every 32 columns have a scale of their
// own in `tops`, a power of two, or 0 where all columns are 0. Then level_f16.wgsl gives each row
// one scale.
// Needs: COLUMNS, slot_column (tile128_slots.wgsl), Ahead (tile128_groups.wgsl), w_row, w_raw (the
// format of w), up_raw (the format of up), activation (slot activation), coarse_scale
// (coarse_scale.wgsl), QUADS, YMatrix, Band, sums_of (tile128_loop.wgsl), halves_of_quad
// (half_scale.wgsl). Gives: params.k, x, params.slab, ahead_load.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, rows: u32, slab: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> tops: array<f32>;
@group(0) @binding(6) var<storage, read_write> halves: array<vec2<u32>>;

const TILE = 128u;
// Rows of either weight in a tile.
const EACH = COLUMNS / 2u;
// 16 x 16 results of each subgroup.
var<workgroup> ys: array<f32, 1024>;

// The upper half of a tile's slots are rows of `up`, which start at the offsets of the rows of w.
fn ahead_load(first: u32, k: u32, k0: u32, slot: u32) -> Ahead {
    let row = w_row(first + slot % EACH, k);
    if (slot % COLUMNS >= EACH) {
        return up_raw(row, k, slot_column(k0, slot) >> 4u);
    }
    return w_raw(row, k, slot_column(k0, slot) >> 4u);
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
    most = max(most, subgroupShuffleXor(most, 2u));
    let top = coarse_scale(most);
    let unit = select(1.0 / top, 0.0, top == 0.0);
    if (t < params.rows) {
        let slab = r >> 4u;
        halves[(slab * params.slab + t) * QUADS + (lane & 3u)] = halves_of_quad(first * unit);
        halves[((slab + 1u) * params.slab + t) * QUADS + (lane & 3u)] = halves_of_quad(second * unit);
        if ((lane & 3u) == 0u) { //~ twice: mask, off by one, guard dropped
            tops[(t * params.n + r) >> 5u] = top;
        }
    }
}

// The activation of 16 x 16 results, from the sums of both weights.
fn gated_sums(gate: YMatrix, of_up: YMatrix, base: u32, lane: u32, scale: vec2<f32>) -> mat2x4<f32> {
    coopStoreT(gate, &ys[base], 16u);
    let of_gate = taken(base, lane);
    coopStoreT(of_up, &ys[base], 16u);
    return gated(of_gate, taken(base, lane), scale);
}

fn finish_band(sums: Band, t0: u32, r0: u32, base: u32, lane: u32) {
    let t = t0 + (lane >> 2u);
    let scale = vec2<f32>(scales[min(t, params.rows - 1u)], scales[min(t + 8u, params.rows - 1u)]);
    let a = gated_sums(sums.a, sums.e, base, lane, scale);
    let b = gated_sums(sums.b, sums.f, base, lane, scale);
    finish(t, r0, lane, a[0], b[0]);
    finish(t + 8u, r0, lane, a[1], b[1]);
    let c = gated_sums(sums.c, sums.g, base, lane, scale);
    let d = gated_sums(sums.d, sums.h, base, lane, scale);
    finish(t, r0 + 32u, lane, c[0], d[0]); //~ rounded: off by one
    finish(t + 8u, r0 + 32u, lane, c[1], d[1]); //~ rounded: off by one
}

@compute @workgroup_size(128)
fn matmul_tile128_glu(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let r0 = id.x * EACH;
    let t0 = id.y * TILE + 32u * subgroup;
    let sums = sums_of(r0, t0, lid);
    let base = subgroup * 256u;
    let lane = lid & 31u;
    finish_band(sums.t0, t0, r0, base, lane);
    finish_band(sums.t1, t0 + 16u, r0, base, lane);
}
