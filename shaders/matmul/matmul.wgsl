// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r]
// x [T, k] f32, w [row_count, k] in any weight format, bias [n] f32 (if has_bias), y [T, n] f32.
// One workgroup makes a tile of 64 x 64 results. It stages 64 rows of x and of w, DEPTH columns at
// a time. The next columns are loaded while the threads multiply the staged ones. Every thread
// accumulates 8 x 8 results.
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 64u;
const TILE = 64u;
const DEPTH = 16u;
const QUADS = DEPTH / 4u;
// Rows of an operand that the workgroup loads at once.
const ROWS = WG / QUADS;
// Threads along each side of the tile. A thread has every SIDE-th row of both operands.
const SIDE = TILE / 8u;
// Rows are padded against bank conflicts. They are arrays, because then the products check bounds
// of a row once: the second index is a constant in an unrolled loop.
var<workgroup> xs: array<array<vec4<f32>, QUADS + 1u>, TILE>;
var<workgroup> ws: array<array<vec4<f32>, QUADS + 1u>, TILE>;

// The rows that a thread loads, ROWS apart: numbers of rows of x, starts of rows of w.
struct Rows { x: vec4<u32>, w: vec4<u32> }
// Four columns of each of them.
struct Ahead { x: mat4x4<f32>, w: mat4x4<f32> }

fn x_row(id: vec3<u32>, row: u32) -> u32 {
    return min(id.y * TILE + row, params.rows - 1u); //~ unowned: sign
}

fn start_of_w(id: vec3<u32>, row: u32) -> u32 {
    return w_row(min(id.x * TILE + row, params.row_count - 1u), params.k); //~ unowned: sign
}

// Loads the i-th quad of columns, or zeros past the end of the rows.
fn load(rows: Rows, i: u32) -> Ahead {
    let k = params.k;
    if (4u * i >= k) {
        return Ahead();
    }
    return Ahead(
        mat4x4<f32>(x_load4(rows.x.x, k, i), x_load4(rows.x.y, k, i), x_load4(rows.x.z, k, i), x_load4(rows.x.w, k, i)),
        mat4x4<f32>(w_load4(rows.w.x, k, i), w_load4(rows.w.y, k, i), w_load4(rows.w.z, k, i), w_load4(rows.w.w, k, i)));
}

fn stage(ahead: Ahead, row: u32, quad: u32) {
    xs[row][quad] = ahead.x[0];
    xs[row + ROWS][quad] = ahead.x[1];
    xs[row + 2u * ROWS][quad] = ahead.x[2];
    xs[row + 3u * ROWS][quad] = ahead.x[3];
    ws[row][quad] = ahead.w[0];
    ws[row + ROWS][quad] = ahead.w[1];
    ws[row + 2u * ROWS][quad] = ahead.w[2];
    ws[row + 3u * ROWS][quad] = ahead.w[3];
}

// Four columns of rows `row`, row + SIDE, row + 2 SIDE and row + 3 SIDE of w, column by column.
fn four_of_w(row: u32, quad: u32) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(ws[row][quad], ws[row + SIDE][quad], ws[row + 2u * SIDE][quad], ws[row + 3u * SIDE][quad]));
}

fn multiply(before: Sums, m: u32, n: u32) -> Sums {
    var s = before;
    for (var i = 0u; i < QUADS; i++) { //~ zeros: comparison
        let near = four_of_w(n, i);
        let far = four_of_w(n + 4u * SIDE, i);
        s.a = add(s.a, xs[m][i], near, far);
        s.b = add(s.b, xs[m + SIDE][i], near, far);
        s.c = add(s.c, xs[m + 2u * SIDE][i], near, far);
        s.d = add(s.d, xs[m + 3u * SIDE][i], near, far);
        s.e = add(s.e, xs[m + 4u * SIDE][i], near, far);
        s.f = add(s.f, xs[m + 5u * SIDE][i], near, far);
        s.g = add(s.g, xs[m + 6u * SIDE][i], near, far);
        s.h = add(s.h, xs[m + 7u * SIDE][i], near, far);
    }
    return s;
}

// Stores the sums of row t of x with every SIDE-th row of w from r0 on.
fn store(t: u32, r0: u32, sums: mat2x4<f32>) {
    var s = sums;
    for (var j = 0u; j < 8u; j++) {
        let r = r0 + j * SIDE;
        if (t < params.rows && r < params.row_count) {
            let at = params.row_base + r;
            let v = s[j / 4u][j % 4u];
            y[t * params.n + at] = select(v, v + bias[at], params.has_bias == 1u);
        }
    }
}

@compute @workgroup_size(WG)
fn matmul(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let quad = lid % QUADS;
    let row = lid / QUADS;
    let rows = Rows(
        vec4<u32>(x_row(id, row), x_row(id, row + ROWS), x_row(id, row + 2u * ROWS), x_row(id, row + 3u * ROWS)),
        vec4<u32>(start_of_w(id, row), start_of_w(id, row + ROWS), start_of_w(id, row + 2u * ROWS), start_of_w(id, row + 3u * ROWS)));
    // Two neighbouring threads have the same rows of w: fewer reads of workgroup memory.
    let m = lid / (2u * SIDE) * 2u + lid % 2u;
    let n = lid / 2u % SIDE;
    var s = Sums();
    var ahead = load(rows, quad);
    for (var k0 = 0u; k0 < params.k; k0 += DEPTH) { //~ zeros: comparison
        workgroupBarrier();
        stage(ahead, row, quad);
        workgroupBarrier();
        ahead = load(rows, (k0 + DEPTH) / 4u + quad);
        s = multiply(s, m, n);
    }
    let t = id.y * TILE + m;
    let r = id.x * TILE + n;
    store(t, r, s.a);
    store(t + SIDE, r, s.b);
    store(t + 2u * SIDE, r, s.c);
    store(t + 3u * SIDE, r, s.d);
    store(t + 4u * SIDE, r, s.e);
    store(t + 5u * SIDE, r, s.f);
    store(t + 6u * SIDE, r, s.g);
    store(t + 7u * SIDE, r, s.h);
}
