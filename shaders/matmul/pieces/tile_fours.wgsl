// A tile of matmul.wgsl by 256 threads with 4 x 4 results each, for few tiles.
// Needs: DEPTH, TILE, params.k, x_row, start_of_w, x_load4, w_load4, store. Gives: WG,
// multiply_tile.
const WG = 256u;
// Both operands lie k-major: TILE rows of the first column, then of the next.
var<workgroup> x_columns: array<vec4<f32>, DEPTH * TILE / 4u>;
var<workgroup> w_columns: array<vec4<f32>, DEPTH * TILE / 4u>;

fn multiply_tile(id: vec3<u32>, lid: u32) {
    let k = params.k;
    // Staging: thread (row = lid / 4, quad = lid mod 4) loads four columns of a row per operand.
    let quad = lid & 3u;
    let row = lid >> 2u;
    let t = x_row(id, row);
    let start = start_of_w(id, row);
    // Results: thread (m, n) owns rows 4 m .. of x by rows 4 n .. of w.
    let m = lid >> 4u;
    let n = lid & 15u;
    var acc = array<vec4<f32>, 4>();
    for (var k0 = 0u; k0 < k; k0 += DEPTH) {
        let i = (k0 >> 2u) + quad;
        var xv = vec4<f32>(0.0);
        var wv = vec4<f32>(0.0);
        if (4u * i < k) {
            xv = x_load4(t, k, i);
            wv = w_load4(start, k, i);
        }
        workgroupBarrier();
        for (var j = 0u; j < 4u; j++) {
            let at = (4u * quad + j) * (TILE / 4u) + (row >> 2u);
            x_columns[at][row & 3u] = xv[j];
            w_columns[at][row & 3u] = wv[j];
        }
        workgroupBarrier();
        for (var j = 0u; j < DEPTH; j++) {
            let a = x_columns[j * (TILE / 4u) + m];
            let b = w_columns[j * (TILE / 4u) + n];
            acc[0] = fma(vec4<f32>(a.x), b, acc[0]);
            acc[1] = fma(vec4<f32>(a.y), b, acc[1]);
            acc[2] = fma(vec4<f32>(a.z), b, acc[2]);
            acc[3] = fma(vec4<f32>(a.w), b, acc[3]);
        }
    }
    for (var i = 0u; i < 4u; i++) { //~ race: comparison
        for (var j = 0u; j < 4u; j++) {
            store(id.y * TILE + 4u * m + i, id.x * TILE + 4u * n + j, acc[i][j]);
        }
    }
}
