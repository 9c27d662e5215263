// g[n, k] += sum_t dy[t, n] x[t, k] over the rows t that count
// dy [rows, n] f32, x [rows, k] f32, g [n, k] f32. One workgroup makes a tile of 64 x 64 results.
// It stages DEPTH rows of dy and of x, 64 columns of each. The next rows are loaded while the
// threads multiply the staged ones. Every thread accumulates 8 x 8 results. The derivative of
// matmul.wgsl by w.
struct Params { k: u32, n: u32, rows: u32, counted: u32, first: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> step_rows: array<u32>;
@group(0) @binding(4) var<storage, read_write> g: array<f32>;

const WG = 64u;
const TILE = 64u;
const DEPTH = 16u;
const QUADS = TILE / 4u;
// Rows that the workgroup loads at once.
const ROWS = WG / QUADS;
// Threads along each side of the tile. A thread has quads of columns SIDE apart of both operands.
const SIDE = TILE / 8u;
// Rows are arrays, because then the products check bounds of a column once.
var<workgroup> ds: array<array<vec4<f32>, QUADS>, DEPTH>;
var<workgroup> xs: array<array<vec4<f32>, QUADS>, DEPTH>;

// A quad of each of four rows of both operands.
struct Ahead { dy: mat4x4<f32>, x: mat4x4<f32> }

// Four elements of row t of dy from column n on, or zeros past the last row. Columns past the last
// hold anything.
fn dy_load4(t: u32, rows: u32, n: u32) -> vec4<f32> {
    var v = vec4<f32>(0.0);
    for (var c = 0u; c < 4u; c++) {
        if (t < rows && n + c < params.n) { //~ unowned: comparison
            v[c] = dy[t * params.n + n + c];
        }
    }
    return v;
}

fn x_load4(t: u32, rows: u32, k: u32) -> vec4<f32> {
    var v = vec4<f32>(0.0);
    for (var c = 0u; c < 4u; c++) {
        if (t < rows && k + c < params.k) { //~ unowned: comparison
            v[c] = x[t * params.k + k + c];
        }
    }
    return v;
}

// Loads a thread's part of the DEPTH rows from t0 on.
fn load(id: vec3<u32>, t0: u32, rows: u32, lid: u32) -> Ahead {
    let t = t0 + lid / QUADS;
    let n = id.y * TILE + 4u * (lid % QUADS);
    let k = id.x * TILE + 4u * (lid % QUADS);
    return Ahead(
        mat4x4<f32>(dy_load4(t, rows, n), dy_load4(t + ROWS, rows, n), dy_load4(t + 2u * ROWS, rows, n), dy_load4(t + 3u * ROWS, rows, n)),
        mat4x4<f32>(x_load4(t, rows, k), x_load4(t + ROWS, rows, k), x_load4(t + 2u * ROWS, rows, k), x_load4(t + 3u * ROWS, rows, k)));
}

fn stage(ahead: Ahead, lid: u32) {
    let row = lid / QUADS;
    let quad = lid % QUADS;
    ds[row][quad] = ahead.dy[0];
    ds[row + ROWS][quad] = ahead.dy[1];
    ds[row + 2u * ROWS][quad] = ahead.dy[2];
    ds[row + 3u * ROWS][quad] = ahead.dy[3];
    xs[row][quad] = ahead.x[0];
    xs[row + ROWS][quad] = ahead.x[1];
    xs[row + 2u * ROWS][quad] = ahead.x[2];
    xs[row + 3u * ROWS][quad] = ahead.x[3];
}

// Quad `quad` of four staged rows of dy from `t` on, column by column.
fn four_of_dy(t: u32, quad: u32) -> mat4x4<f32> {
    return transpose(mat4x4<f32>(ds[t][quad], ds[t + 1u][quad], ds[t + 2u][quad], ds[t + 3u][quad]));
}

// Quad `quad` of four staged rows of x from `t` on.
fn four_of_x(t: u32, quad: u32) -> mat4x4<f32> {
    return mat4x4<f32>(xs[t][quad], xs[t + 1u][quad], xs[t + 2u][quad], xs[t + 3u][quad]);
}

fn multiply(before: Sums, m: u32, n: u32) -> Sums {
    var s = before;
    for (var t = 0u; t < DEPTH; t += 4u) {
        let near = four_of_x(t, n);
        let far = four_of_x(t, n + SIDE);
        let low = four_of_dy(t, m);
        let high = four_of_dy(t, m + SIDE);
        s.a = add(s.a, low[0], near, far);
        s.b = add(s.b, low[1], near, far);
        s.c = add(s.c, low[2], near, far);
        s.d = add(s.d, low[3], near, far);
        s.e = add(s.e, high[0], near, far);
        s.f = add(s.f, high[1], near, far);
        s.g = add(s.g, high[2], near, far);
        s.h = add(s.h, high[3], near, far);
    }
    return s;
}

// Adds two quads to row n of the gradient, from columns `column` and column + 4 SIDE on.
fn store(n: u32, column: u32, sums: mat2x4<f32>) {
    var s = sums;
    for (var j = 0u; j < 8u; j++) {
        let k = column + j / 4u * 4u * SIDE + j % 4u;
        if (n < params.n && k < params.k) { //~ race: comparison, guard dropped
            g[n * params.k + k] += s[j / 4u][j % 4u];
        }
    }
}

@compute @workgroup_size(WG)
fn matmul_weight(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let rows = rows_that_count();
    // Two neighbouring threads have the same columns of x: fewer reads of workgroup memory.
    let m = lid / (2u * SIDE) * 2u + lid % 2u;
    let n = lid / 2u % SIDE;
    var s = Sums();
    var ahead = load(id, 0u, rows, lid);
    for (var t0 = 0u; t0 < rows; t0 += DEPTH) { //~ empty: comparison
        workgroupBarrier();
        stage(ahead, lid);
        workgroupBarrier();
        ahead = load(id, t0 + DEPTH, rows, lid);
        s = multiply(s, m, n);
    }
    let row = id.y * TILE + 4u * m;
    let column = id.x * TILE + 4u * n;
    store(row, column, s.a);
    store(row + 1u, column, s.b);
    store(row + 2u, column, s.c);
    store(row + 3u, column, s.d);
    let lower = row + 4u * SIDE;
    store(lower, column, s.e);
    store(lower + 1u, column, s.f);
    store(lower + 2u, column, s.g);
    store(lower + 3u, column, s.h);
}
