// A tile of matmul.wgsl by 64 threads with 8 x 8 results each, for many tiles: 16 reads of
// workgroup memory serve 256 products of a thread. The next columns are loaded while the threads
// multiply the staged ones. A result has the bits that tile_fours.wgsl gives.
// Needs: DEPTH, TILE, params.k, x_load4, w_load4, store, x_row, start_of_w. Gives: WG,
// multiply_tile.
const WG = 64u;
const DEPTH_QUADS = DEPTH / 4u;
// Rows of an operand that the workgroup loads at once.
const ROWS = WG / DEPTH_QUADS;
// Threads along each side of the tile. A thread has every SIDE-th row of both operands.
const SIDE = TILE / 8u;
// Rows are padded against bank conflicts. They are arrays, because then the products check bounds
// of a row once: the second index is a constant in an unrolled loop.
var<workgroup> x_rows: array<array<vec4<f32>, DEPTH_QUADS + 1u>, TILE>;
var<workgroup> w_rows: array<array<vec4<f32>, DEPTH_QUADS + 1u>, TILE>;

// The rows that a thread loads, ROWS apart: numbers of rows of x, starts of rows of w.
struct Rows { x: vec4<u32>, w: vec4<u32> }
// Four columns of each of these rows.
struct TileAhead { x: mat4x4<f32>, w: mat4x4<f32> }
// The sums of eight rows of x with eight rows of w.
struct TileSums { a: mat2x4<f32>, b: mat2x4<f32>, c: mat2x4<f32>, d: mat2x4<f32>, e: mat2x4<f32>, f: mat2x4<f32>, g: mat2x4<f32>, h: mat2x4<f32> }

// Loads the i-th quad of columns, or zeros past the end of the rows.
fn load_quads(rows: Rows, i: u32) -> TileAhead {
    let k = params.k;
    if (4u * i >= k) {
        return TileAhead();
    }
    return TileAhead(
        mat4x4<f32>(x_load4(rows.x.x, k, i), x_load4(rows.x.y, k, i), x_load4(rows.x.z, k, i), x_load4(rows.x.w, k, i)),
        mat4x4<f32>(w_load4(rows.w.x, k, i), w_load4(rows.w.y, k, i), w_load4(rows.w.z, k, i), w_load4(rows.w.w, k, i)));
}

fn stage_quads(ahead: TileAhead, row: u32, quad: u32) {
    x_rows[row][quad] = ahead.x[0];
    x_rows[row + ROWS][quad] = ahead.x[1];
    x_rows[row + 2u * ROWS][quad] = ahead.x[2];
    x_rows[row + 3u * ROWS][quad] = ahead.x[3];
    w_rows[row][quad] = ahead.w[0];
    w_rows[row + ROWS][quad] = ahead.w[1];
    w_rows[row + 2u * ROWS][quad] = ahead.w[2];
    w_rows[row + 3u * ROWS][quad] = ahead.w[3];
}

// Four columns of rows `row`, row + SIDE, row + 2 SIDE and row + 3 SIDE of w, column by column.
fn four_of_w(row: u32, quad: u32) -> mat4x4<f32> {
    let a = w_rows[row][quad];
    let b = w_rows[row + SIDE][quad];
    let c = w_rows[row + 2u * SIDE][quad];
    let d = w_rows[row + 3u * SIDE][quad];
    return mat4x4<f32>(
        vec4<f32>(a.x, b.x, c.x, d.x), vec4<f32>(a.y, b.y, c.y, d.y), vec4<f32>(a.z, b.z, c.z, d.z), vec4<f32>(a.w, b.w, c.w, d.w));
}

// Adds the products of four columns of one row of x and eight rows of w.
fn add_row(sums: mat2x4<f32>, x: vec4<f32>, near: mat4x4<f32>, far: mat4x4<f32>) -> mat2x4<f32> {
    return mat2x4<f32>(add_four(sums[0], x, near), add_four(sums[1], x, far));
}

fn add_four(sum: vec4<f32>, x: vec4<f32>, of_w: mat4x4<f32>) -> vec4<f32> {
    let two = fma(vec4<f32>(x.y), of_w[1], fma(vec4<f32>(x.x), of_w[0], sum));
    return fma(vec4<f32>(x.w), of_w[3], fma(vec4<f32>(x.z), of_w[2], two));
}

fn add_staged(before: TileSums, m: u32, n: u32) -> TileSums {
    var s = before;
    for (var i = 0u; i < DEPTH_QUADS; i++) { //~ zeros: comparison
        let near = four_of_w(n, i);
        let far = four_of_w(n + 4u * SIDE, i);
        s.a = add_row(s.a, x_rows[m][i], near, far);
        s.b = add_row(s.b, x_rows[m + SIDE][i], near, far);
        s.c = add_row(s.c, x_rows[m + 2u * SIDE][i], near, far);
        s.d = add_row(s.d, x_rows[m + 3u * SIDE][i], near, far);
        s.e = add_row(s.e, x_rows[m + 4u * SIDE][i], near, far);
        s.f = add_row(s.f, x_rows[m + 5u * SIDE][i], near, far);
        s.g = add_row(s.g, x_rows[m + 6u * SIDE][i], near, far);
        s.h = add_row(s.h, x_rows[m + 7u * SIDE][i], near, far);
    }
    return s;
}

// Stores the sums of row t of x with every SIDE-th row of w from r on.
fn store_row(t: u32, r: u32, sums: mat2x4<f32>) {
    store(t, r, sums[0].x);
    store(t, r + SIDE, sums[0].y);
    store(t, r + 2u * SIDE, sums[0].z);
    store(t, r + 3u * SIDE, sums[0].w);
    store(t, r + 4u * SIDE, sums[1].x);
    store(t, r + 5u * SIDE, sums[1].y);
    store(t, r + 6u * SIDE, sums[1].z);
    store(t, r + 7u * SIDE, sums[1].w);
}

fn multiply_tile(id: vec3<u32>, lid: u32) {
    let quad = lid % DEPTH_QUADS;
    let row = lid / DEPTH_QUADS;
    let rows = Rows(
        vec4<u32>(x_row(id, row), x_row(id, row + ROWS), x_row(id, row + 2u * ROWS), x_row(id, row + 3u * ROWS)),
        vec4<u32>(start_of_w(id, row), start_of_w(id, row + ROWS), start_of_w(id, row + 2u * ROWS), start_of_w(id, row + 3u * ROWS)));
    // Two neighbouring threads have the same rows of w: fewer reads of workgroup memory.
    let m = lid / (2u * SIDE) * 2u + lid % 2u;
    let n = lid / 2u % SIDE;
    var s = TileSums();
    var ahead = load_quads(rows, quad);
    for (var k0 = 0u; k0 < params.k; k0 += DEPTH) {
        workgroupBarrier();
        stage_quads(ahead, row, quad);
        workgroupBarrier();
        ahead = load_quads(rows, (k0 + DEPTH) / 4u + quad);
        s = add_staged(s, m, n);
    }
    let t = id.y * TILE + m;
    let r = id.x * TILE + n;
    store_row(t, r, s.a);
    store_row(t + SIDE, r, s.b);
    store_row(t + 2u * SIDE, r, s.c);
    store_row(t + 3u * SIDE, r, s.d);
    store_row(t + 4u * SIDE, r, s.e);
    store_row(t + 5u * SIDE, r, s.f);
    store_row(t + 6u * SIDE, r, s.g);
    store_row(t + 7u * SIDE, r, s.h);
}
