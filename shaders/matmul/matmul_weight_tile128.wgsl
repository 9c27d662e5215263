// g[n, k] += sum_t dy[t, n] x[t, k] over the rows t that count, with cooperative matrices of f16
// and f32 sums
// dy [rows, n] and x [rows, k] f16 divided by dy_scales and x_scales [rows] f32 (pack_f16.wgsl), n
// and k multiples of 4, x with pitches as in pack_f16.wgsl, g [n, k] f32. One workgroup makes 128 x
// 128 results (tile128_sums.wgsl). Rows have different scales, so no scale is a common factor of a
// sum over rows. The product of a row's two scales divided by the largest such product is a power
// of two of at most 1. Rows of dy are multiplied by it while they are staged, and sums by the
// largest product at the end. So rows whose product is below 2^-28 of the largest lose precision.
// Needs: rows_that_count (step_rows.wgsl), sum_tile (tile128_sums.wgsl). Gives: operands_load,
// DEPTH, operands_store, a_tile, b_tile, TILE, ys, finish, step_rows, params.counted, params.rows,
// params.first.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, rows: u32, counted: u32, first: u32, row_pitch: u32, slab_pitch: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> dy_scales: array<f32>;
@group(0) @binding(3) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(4) var<storage, read> x_scales: array<f32>;
@group(0) @binding(5) var<storage, read> step_rows: array<u32>;
@group(0) @binding(6) var<storage, read_write> g: array<vec4<f32>>;

const TILE = 128u;
const DEPTH = 32u;
// Row pitch of the tiles in vectors of four, padded so that rows start on different banks.
const ROW = TILE / 4u + 2u;
var<workgroup> ds: array<vec4<f16>, DEPTH * ROW>;
var<workgroup> xs: array<vec4<f16>, DEPTH * ROW>;
// 16 x 16 results of each subgroup; before, the largest product of scales that a thread saw.
var<workgroup> ys: array<f32, 1024>;
// Rows that count, and the largest product of their scales, 1 if all are rows of zeros.
var<private> rows: u32;
var<private> most: f32;

struct Operands { dy: array<vec4<f16>, 8>, x: array<vec4<f16>, 8> }

// Loads the rows from `t0` on: a quad of eight rows of each operand per thread, zeros past the rows
// and columns.
fn operands_load(id: vec3<u32>, t0: u32, lid: u32) -> Operands {
    let quad = lid & 31u;
    let n = id.y * (TILE / 4u) + quad;
    let k = id.x * (TILE / 4u) + quad;
    let wide = params.n >> 2u;
    let deep = params.k >> 2u;
    let column = min(k, deep - 1u);
    var ahead: Operands;
    for (var j = 0u; j < 8u; j++) {
        let t = t0 + (lid >> 5u) + 4u * j;
        let row = min(t, params.rows - 1u);
        let by = dy_scales[row] * x_scales[row] / most;
        let of_dy = vec4<f16>(vec4<f32>(dy[row * wide + min(n, wide - 1u)]) * by);
        ahead.dy[j] = select(vec4<f16>(), of_dy, t < rows && n < wide); //~ unowned: comparison
        ahead.x[j] = select(vec4<f16>(), x[row * params.row_pitch + (column >> 2u) * params.slab_pitch + (column & 3u)], t < rows && k < deep); //~ unowned: comparison
    }
    return ahead;
}

fn operands_store(ahead: Operands, id: vec3<u32>, lid: u32) {
    var of_dy = ahead.dy;
    var of_x = ahead.x;
    for (var j = 0u; j < 8u; j++) { //~ clamped: comparison
        let at = ((lid >> 5u) + 4u * j) * ROW + (lid & 31u);
        ds[at] = of_dy[j];
        xs[at] = of_x[j];
    }
}

fn a_tile(m: u32, depth: u32) -> coop_mat16x16<f16, A> {
    return coopLoad<coop_mat16x16<f16, A>>(&ds[depth * ROW + (m >> 2u)], ROW);
}

fn b_tile(n: u32, depth: u32) -> coop_mat16x16<f16, B> {
    return coopLoadT<coop_mat16x16<f16, B>>(&xs[depth * ROW + (n >> 2u)], ROW);
}

// Adds the 16 x 16 results that a subgroup left at ys[base..].
fn finish(n0: u32, k0: u32, base: u32, lane: u32) {
    workgroupBarrier();
    for (var i = lane; i < 64u; i += 32u) {
        let n = n0 + (i >> 2u);
        let k = k0 + ((i & 3u) << 2u);
        if (n < params.n && k < params.k) { //~ surplus: comparison
            let first = base + 4u * i;
            g[(n * params.k + k) >> 2u] += vec4<f32>(ys[first], ys[first + 1u], ys[first + 2u], ys[first + 3u]) * most;
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(128)
fn matmul_weight_tile128(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    rows = rows_that_count();
    var largest = 0.0;
    for (var t = lid; t < rows; t += 128u) {
        largest = max(largest, dy_scales[t] * x_scales[t]);
    }
    ys[lid] = largest;
    workgroupBarrier();
    for (var i = 0u; i < 128u; i++) { //~ zeros: comparison
        largest = max(largest, ys[i]);
    }
    most = select(largest, 1.0, largest == 0.0);
    sum_tile(id, rows, subgroup, lid);
}
