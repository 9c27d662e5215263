// dx[t, k] = sum_r dy[t, row_base + r] w[r, k], added to dx if onto = 1, with cooperative matrices
// of f16 and f32 sums
// dy [rows, n] f16 divided by scales [rows] f32 (pack_f16.wgsl), w [row_count, k], k a multiple of
// 32, n, row_base and row_count of 4, dx [rows, k] f32. One workgroup makes 128 x 128 results
// (tile128_sums.wgsl). It sums over the rows of w, 32 at a time, 128 columns of each, which it
// stages as they lie. tile128_quads.wgsl and tile128_groups.wgsl dequantize. The derivative of
// matmul_tile128.wgsl by x.
// Needs: Ahead, ahead_store, begin (tile128_groups.wgsl or tile128_quads.wgsl), ahead_load
// (tile128_ahead.wgsl or tile128_quads.wgsl), sum_tile (tile128_sums.wgsl). Gives: operands_load,
// DEPTH, operands_store, a_tile, b_tile, TILE, ys, finish, slot_row, slot_column, slot_live, ws,
// slot_at, WG.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, onto: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> dx: array<vec4<f32>>;

const WG = 128u;
const TILE = 128u;
const DEPTH = 32u;
// Pitch of 32 columns of w in eights of columns. It is odd, so that slots start on different banks.
const PITCH = DEPTH / 8u + 1u;
// Pitches of rows of dy (DY_ROW) and of w (W_ROW) in vectors of four.
const DY_ROW = 2u * PITCH;
const W_ROW = 8u * PITCH;
var<workgroup> ds: array<vec4<f16>, TILE * DY_ROW>;
var<workgroup> ws: array<mat2x4<f16>, 4u * DEPTH * PITCH>;
// 16 x 16 results of each subgroup.
var<workgroup> ys: array<f32, 1024>;

// A slot of the staged weights is 32 columns of a row, four slots to a row.
fn slot_row(first: u32, slot: u32) -> u32 {
    return min(first + (slot >> 2u), params.row_count - 1u);
}

fn slot_column(k0: u32, slot: u32) -> u32 {
    return min(k0 + DEPTH * (slot & 3u), params.k - DEPTH);
}

fn slot_at(slot: u32) -> u32 {
    return slot * PITCH;
}

fn slot_live(k0: u32, slot: u32) -> bool {
    return true;
}

// Four derivatives of a row that starts at `start`, by the results from `r` on; zeros behind the
// last, where rows of w repeat.
fn dy_quad(start: u32, r: u32) -> vec4<f16> {
    let last = params.row_count - 4u;
    return select(vec4<f16>(), dy[start + (min(r, last) >> 2u)], r <= last);
}

struct Operands { dy: array<vec4<f16>, 8>, w: Ahead }

// Loads the sums' rows from `r0` on: a quad of eight rows of dy per thread, and slots of w.
fn operands_load(id: vec3<u32>, r0: u32, lid: u32) -> Operands {
    var ahead: Operands;
    for (var j = 0u; j < 8u; j++) {
        let t = min(id.y * TILE + (lid >> 3u) + 16u * j, params.rows - 1u);
        ahead.dy[j] = dy_quad((t * params.n + params.row_base) >> 2u, r0 + 4u * (lid & 7u));
    }
    ahead.w = ahead_load(r0, params.k, id.x * TILE, lid);
    return ahead;
}

fn operands_store(ahead: Operands, id: vec3<u32>, lid: u32) {
    var quads = ahead.dy;
    for (var j = 0u; j < 8u; j++) { //~ clamped: comparison
        ds[((lid >> 3u) + 16u * j) * DY_ROW + (lid & 7u)] = quads[j];
    }
    ahead_store(ahead.w, id.x * TILE, lid);
}

fn a_tile(m: u32, depth: u32) -> coop_mat16x16<f16, A> {
    return coopLoadT<coop_mat16x16<f16, A>>(&ds[m * DY_ROW + (depth >> 2u)], DY_ROW);
}

fn b_tile(n: u32, depth: u32) -> coop_mat16x16<f16, B> {
    return coopLoadT<coop_mat16x16<f16, B>>(&ws[(4u * depth + (n >> 5u)) * PITCH + ((n & 31u) >> 3u)][0], W_ROW);
}

// Writes the 16 x 16 results that a subgroup left at ys[base..].
fn finish(t0: u32, c0: u32, base: u32, lane: u32) {
    workgroupBarrier();
    for (var i = lane; i < 64u; i += 32u) {
        let t = t0 + (i >> 2u);
        let c = c0 + ((i & 3u) << 2u);
        if (t < params.rows && c < params.k) {
            let first = base + 4u * i;
            let at = (t * params.k + c) >> 2u;
            let v = vec4<f32>(ys[first], ys[first + 1u], ys[first + 2u], ys[first + 3u]) * scales[t];
            dx[at] = select(v, v + dx[at], params.onto == 1u);
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(128)
fn matmul_input_tile128(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    begin(lid);
    sum_tile(id, params.row_count, subgroup, lid);
}
