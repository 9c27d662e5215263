// dx[t, k] = sum_r dy[t, row_base + r] w[r, k], added to dx if onto = 1
// dy [T, n] f32, w [row_count, k] in any weight format, dx [T, k] f32. One workgroup makes a tile
// of 64 x 64 results. It stages 16 rows of w, 64 columns of each, as they lie, and the same columns
// of 64 rows of dy. Every thread accumulates 4 x 4 results. The derivative of matmul.wgsl by x.
// Needs: w_load4, w_row (the format of w). Gives: nothing.
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, onto: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

const TILE = 64u;
const DEPTH = 16u;
var<workgroup> ds: array<vec4<f32>, DEPTH * TILE / 4u>;
var<workgroup> ws: array<vec4<f32>, DEPTH * TILE / 4u>;

@compute @workgroup_size(256)
fn matmul_input(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let k = params.k;
    // Staging of dy: thread (row = lid / 4, quad = lid mod 4) loads four columns of a row.
    let quad = lid & 3u;
    let row = lid >> 2u;
    let dy_start = min(id.y * TILE + row, params.rows - 1u) * params.n + params.row_base;
    // Staging of w: thread (depth = lid / 16, i) loads four columns of a row.
    let depth = lid >> 4u;
    let i = id.x * (TILE / 4u) + (lid & 15u);
    // Results: thread (m, j) owns rows 4 m .. of dy by columns 4 j .. of w.
    let m = lid >> 4u;
    let j = lid & 15u;
    var acc = array<vec4<f32>, 4>();
    for (var r0 = 0u; r0 < params.row_count; r0 += DEPTH) {
        var dv = vec4<f32>(0.0);
        for (var c = 0u; c < 4u; c++) {
            let r = r0 + 4u * quad + c;
            if (r < params.row_count) { //~ zeros: comparison, guard dropped
                dv[c] = dy[dy_start + r];
            }
        }
        var wv = vec4<f32>(0.0);
        if (r0 + depth < params.row_count && 4u * i < k) { //~ zeros: comparison, guard dropped; unowned: mask
            wv = w_load4(w_row(r0 + depth, k), k, i);
        }
        workgroupBarrier();
        for (var c = 0u; c < 4u; c++) {
            ds[(4u * quad + c) * (TILE / 4u) + (row >> 2u)][row & 3u] = dv[c];
        }
        ws[lid] = wv;
        workgroupBarrier();
        for (var d = 0u; d < DEPTH; d++) {
            let a = ds[d * (TILE / 4u) + m];
            let b = ws[d * (TILE / 4u) + j];
            acc[0] += a.x * b;
            acc[1] += a.y * b;
            acc[2] += a.z * b;
            acc[3] += a.w * b;
        }
    }
    for (var a = 0u; a < 4u; a++) {
        let t = id.y * TILE + 4u * m + a;
        for (var b = 0u; b < 4u; b++) {
            let column = id.x * TILE + 4u * j + b;
            if (t < params.rows && column < k) {
                let at = t * k + column;
                dx[at] = select(acc[a][b], dx[at] + acc[a][b], params.onto == 1u);
            }
        }
    }
}
