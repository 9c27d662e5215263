// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r]
// x [T, k] f32, w [row_count, k] in any weight format, bias [n] f32 (if has_bias), y [T, n] f32.
// One workgroup makes a tile of 64 x 64 results. It stages 64 rows of x and of w, DEPTH columns at
// a time. Every thread accumulates 4 x 4 results (tile_fours.wgsl) or 8 x 8 (tile_eights.wgsl).
// Needs: w_row (the format of w), WG, multiply_tile (slot tile). Gives: DEPTH, TILE, params.k,
// x_row, start_of_w, store. Bindings of pieces: x (slot quads).
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const TILE = 64u;
const DEPTH = 16u;

// The number of row `row` of x of a tile, or of the last.
fn x_row(id: vec3<u32>, row: u32) -> u32 {
    return min(id.y * TILE + row, params.rows - 1u);
}

// The start of row `row` of w of a tile, or of the last.
fn start_of_w(id: vec3<u32>, row: u32) -> u32 {
    return w_row(min(id.x * TILE + row, params.row_count - 1u), params.k);
}

// Stores the result of row t of x with row r of w, if both exist.
fn store(t: u32, r: u32, sum: f32) {
    if (t < params.rows && r < params.row_count) {
        let at = params.row_base + r;
        y[t * params.n + at] = select(sum, sum + bias[at], params.has_bias == 1u);
    }
}

@compute @workgroup_size(WG)
fn matmul(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    multiply_tile(id, lid);
}
