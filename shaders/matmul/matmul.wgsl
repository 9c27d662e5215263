// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r]
// x [T, k] f32, w [row_count, k] in any weight format, bias [n] f32 (if has_bias), y [T, n] f32.
// One workgroup makes a tile of 64 x 64 results. It stages 64 rows of x and of w, 16 columns at a
// time, k-major. Every thread accumulates 4 x 4 results.
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const TILE = 64u;
const DEPTH = 16u;
var<workgroup> xs: array<vec4<f32>, DEPTH * TILE / 4u>;
var<workgroup> ws: array<vec4<f32>, DEPTH * TILE / 4u>;

@compute @workgroup_size(256)
fn matmul(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let k = params.k;
    // Staging: thread (row = lid / 4, quad = lid mod 4) loads four columns of a row per operand.
    let quad = lid & 3u;
    let row = lid >> 2u;
    let x_row = min(id.y * TILE + row, params.rows - 1u); //~ unowned: sign
    let w_start = w_row(min(id.x * TILE + row, params.row_count - 1u), k); //~ unowned: sign
    // Results: thread (m, n) owns rows 4 m .. of x by rows 4 n .. of w.
    let m = lid >> 4u;
    let n = lid & 15u;
    var acc = array<vec4<f32>, 4>();
    for (var k0 = 0u; k0 < k; k0 += DEPTH) { //~ zeros: comparison
        let i = (k0 >> 2u) + quad;
        var xv = vec4<f32>(0.0);
        var wv = vec4<f32>(0.0);
        if (4u * i < k) {
            xv = x_load4(x_row, k, i);
            wv = w_load4(w_start, k, i);
        }
        workgroupBarrier();
        for (var j = 0u; j < 4u; j++) {
            let at = (4u * quad + j) * (TILE / 4u) + (row >> 2u);
            xs[at][row & 3u] = xv[j];
            ws[at][row & 3u] = wv[j];
        }
        workgroupBarrier();
        for (var j = 0u; j < DEPTH; j++) {
            let a = xs[j * (TILE / 4u) + m];
            let b = ws[j * (TILE / 4u) + n];
            acc[0] += a.x * b;
            acc[1] += a.y * b;
            acc[2] += a.z * b;
            acc[3] += a.w * b;
        }
    }
    for (var i = 0u; i < 4u; i++) { //~ race: comparison
        let t = id.y * TILE + 4u * m + i;
        for (var j = 0u; j < 4u; j++) {
            let r = id.x * TILE + 4u * n + j;
            if (t < params.rows && r < params.row_count) {
                let at = params.row_base + r;
                y[t * params.n + at] = select(acc[i][j], acc[i][j] + bias[at], params.has_bias == 1u);
            }
        }
    }
}
