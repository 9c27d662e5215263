// g[n, k] += sum_t dy[t, n] x[t, k] over the rows t that count
// dy [rows, n] f32, x [rows, k] f32, g [n, k] f32. One workgroup makes a tile of 64 x 64 results.
// It stages 16 rows of dy and of x, 64 columns of each. Every thread accumulates 4 x 4 results. The
// derivative of matmul.wgsl by w.
// Needs: rows_that_count (step_rows.wgsl). Gives: step_rows, params.counted, params.rows,
// params.first.
struct Params { k: u32, n: u32, rows: u32, counted: u32, first: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> step_rows: array<u32>;
@group(0) @binding(4) var<storage, read_write> g: array<f32>;

const TILE = 64u;
const DEPTH = 16u;
var<workgroup> ds: array<vec4<f32>, DEPTH * TILE / 4u>;
var<workgroup> xs: array<vec4<f32>, DEPTH * TILE / 4u>;

@compute @workgroup_size(256)
fn matmul_weight(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let rows = rows_that_count();
    // Staging: thread (depth = lid / 16, quad) loads four columns of a row of each operand.
    let depth = lid >> 4u;
    let quad = lid & 15u;
    let n0 = id.y * TILE;
    let k0 = id.x * TILE;
    var acc = array<vec4<f32>, 4>();
    for (var t0 = 0u; t0 < rows; t0 += DEPTH) {
        let t = t0 + depth;
        var dv = vec4<f32>(0.0);
        var xv = vec4<f32>(0.0);
        for (var c = 0u; c < 4u; c++) {
            let n = n0 + 4u * quad + c;
            let k = k0 + 4u * quad + c;
            if (t < rows && n < params.n) { //~ unowned: comparison
                dv[c] = dy[t * params.n + n];
            }
            if (t < rows && k < params.k) { //~ unowned: comparison
                xv[c] = x[t * params.k + k];
            }
        }
        workgroupBarrier();
        ds[lid] = dv;
        xs[lid] = xv;
        workgroupBarrier();
        for (var d = 0u; d < DEPTH; d++) {
            let a = ds[d * (TILE / 4u) + depth];
            let b = xs[d * (TILE / 4u) + quad];
            acc[0] += a.x * b;
            acc[1] += a.y * b;
            acc[2] += a.z * b;
            acc[3] += a.w * b;
        }
    }
    for (var a = 0u; a < 4u; a++) {
        let n = n0 + 4u * depth + a;
        for (var b = 0u; b < 4u; b++) {
            let k = k0 + 4u * quad + b;
            if (n < params.n && k < params.k) { //~ race: comparison, guard dropped
                g[n * params.k + k] += acc[a][b];
            }
        }
    }
}
