// dx[t, k] = sum_r dy[t, row_base + r] w[r, k], added to dx if onto = 1
// dy [T, n] f32, w [row_count, k] in any weight format, dx [T, k] f32. One workgroup makes a tile
// of 64 x 64 results. It stages DEPTH rows of w, 64 columns of each, as they lie, and the same
// columns of 64 rows of dy. The next ones are loaded while the threads multiply the staged ones.
// Every thread accumulates 8 x 8 results. The derivative of matmul.wgsl by x.
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, onto: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;

const WG = 64u;
const TILE = 64u;
const DEPTH = 16u;
const QUADS = DEPTH / 4u;
// Rows of dy, and rows of w, that the workgroup loads at once.
const ROWS = WG / QUADS;
const DEEP = WG / (TILE / 4u);
// Threads along each side of the tile. A thread has every SIDE-th row of dy, and quads of columns
// SIDE apart.
const SIDE = TILE / 8u;
// Rows of dy are padded against bank conflicts. Rows are arrays, because then the products check
// bounds of a row once.
var<workgroup> ds: array<array<vec4<f32>, QUADS + 1u>, TILE>;
var<workgroup> ws: array<array<vec4<f32>, TILE / 4u>, DEPTH>;

// Four elements of four rows of dy, and four quads of w.
struct Ahead { dy: mat4x4<f32>, w: mat4x4<f32> }

// Four elements of row t of dy from weight row r on, with zeros past the last.
fn dy_load4(t: u32, r: u32) -> vec4<f32> {
    let at = min(t, params.rows - 1u) * params.n + params.row_base + r; //~ unowned: sign
    var v = vec4<f32>(0.0);
    for (var c = 0u; c < 4u; c++) {
        if (r + c < params.row_count) { //~ zeros: comparison, guard dropped
            v[c] = dy[at + c];
        }
    }
    return v;
}

// Quad i of weight row r, or zeros.
fn w_quad(r: u32, i: u32) -> vec4<f32> {
    if (r >= params.row_count || 4u * i >= params.k) { //~ zeros: comparison, guard dropped; unowned: mask
        return vec4<f32>(0.0);
    }
    return w_load4(w_row(r, params.k), params.k, i);
}

// Loads a thread's part of the DEPTH weight rows from r0 on.
fn load(id: vec3<u32>, r0: u32, lid: u32) -> Ahead {
    let t = id.y * TILE + lid / QUADS;
    let r = r0 + 4u * (lid % QUADS);
    let depth = r0 + lid / (TILE / 4u);
    let i = id.x * (TILE / 4u) + lid % (TILE / 4u);
    return Ahead(
        mat4x4<f32>(dy_load4(t, r), dy_load4(t + ROWS, r), dy_load4(t + 2u * ROWS, r), dy_load4(t + 3u * ROWS, r)),
        mat4x4<f32>(w_quad(depth, i), w_quad(depth + DEEP, i), w_quad(depth + 2u * DEEP, i), w_quad(depth + 3u * DEEP, i)));
}

fn stage(ahead: Ahead, lid: u32) {
    let row = lid / QUADS;
    let quad = lid % QUADS;
    ds[row][quad] = ahead.dy[0];
    ds[row + ROWS][quad] = ahead.dy[1];
    ds[row + 2u * ROWS][quad] = ahead.dy[2];
    ds[row + 3u * ROWS][quad] = ahead.dy[3];
    let depth = lid / (TILE / 4u);
    let i = lid % (TILE / 4u);
    ws[depth][i] = ahead.w[0];
    ws[depth + DEEP][i] = ahead.w[1];
    ws[depth + 2u * DEEP][i] = ahead.w[2];
    ws[depth + 3u * DEEP][i] = ahead.w[3];
}

// Quad i of four staged rows of w from `depth` on.
fn four_of_w(depth: u32, i: u32) -> mat4x4<f32> {
    return mat4x4<f32>(ws[depth][i], ws[depth + 1u][i], ws[depth + 2u][i], ws[depth + 3u][i]);
}

fn multiply(before: Sums, m: u32, n: u32) -> Sums {
    var s = before;
    for (var i = 0u; i < QUADS; i++) { //~ zeros: comparison
        let near = four_of_w(4u * i, n);
        let far = four_of_w(4u * i, n + SIDE);
        s.a = add(s.a, ds[m][i], near, far);
        s.b = add(s.b, ds[m + SIDE][i], near, far);
        s.c = add(s.c, ds[m + 2u * SIDE][i], near, far);
        s.d = add(s.d, ds[m + 3u * SIDE][i], near, far);
        s.e = add(s.e, ds[m + 4u * SIDE][i], near, far);
        s.f = add(s.f, ds[m + 5u * SIDE][i], near, far);
        s.g = add(s.g, ds[m + 6u * SIDE][i], near, far);
        s.h = add(s.h, ds[m + 7u * SIDE][i], near, far);
    }
    return s;
}

// Stores two quads of row t, from columns `column` and column + 4 SIDE on.
fn store(t: u32, column: u32, sums: mat2x4<f32>) {
    var s = sums;
    for (var j = 0u; j < 8u; j++) {
        let k = column + j / 4u * 4u * SIDE + j % 4u;
        if (t < params.rows && k < params.k) {
            let at = t * params.k + k;
            let v = s[j / 4u][j % 4u];
            dx[at] = select(v, dx[at] + v, params.onto == 1u);
        }
    }
}

@compute @workgroup_size(WG)
fn matmul_input(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    // Two neighbouring threads have the same columns: fewer reads of workgroup memory.
    let m = lid / (2u * SIDE) * 2u + lid % 2u;
    let n = lid / 2u % SIDE;
    var s = Sums();
    var ahead = load(id, 0u, lid);
    for (var r0 = 0u; r0 < params.row_count; r0 += DEPTH) { //~ empty: comparison
        workgroupBarrier();
        stage(ahead, lid);
        workgroupBarrier();
        ahead = load(id, r0 + DEPTH, lid);
        s = multiply(s, m, n);
    }
    let t = id.y * TILE + m;
    let column = id.x * TILE + 4u * n;
    store(t, column, s.a);
    store(t + SIDE, column, s.b);
    store(t + 2u * SIDE, column, s.c);
    store(t + 3u * SIDE, column, s.d);
    store(t + 4u * SIDE, column, s.e);
    store(t + 5u * SIDE, column, s.f);
    store(t + 6u * SIDE, column, s.g);
    store(t + 7u * SIDE, column, s.h);
}
