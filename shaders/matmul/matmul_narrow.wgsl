// y[t, r] = scale sum_k w[r, k] x[t, k] with x[t, k] = h[t, k] / sqrt(mean_k h[t, k]^2 + eps) u[k]
// if has_norm, otherwise x = h
// h, x [rows, k] f32, k a multiple of 4, w [n, k] f32, u [k] f32 (not read when has_weight = 0), y
// [rows, n] f32: several rows with a weight of few rows, such as a router, normed here or not. One
// workgroup makes 8 rows by 8 results. Its threads share the columns, because such products have
// few results: a thread loads four columns of all 16 rows at once and has a part of all 64 sums.
// Every 32 threads exchange halves of their sums, and the parts of these groups are added at the
// end, where the factor of the norm is applied.
// Needs: TWO_POW_MINUS_32, TWO_POW_MINUS_64 (norm_share.wgsl), lanes_other4, lanes_other2,
// lanes_other (lanes_near.wgsl). Gives: WG.
struct Params { k: u32, n: u32, rows: u32, has_norm: u32, has_weight: u32, eps: f32, scale: f32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> u: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 128u;
const LANES = 32u;
const ROWS = 8u;
const WEIGHT_ROWS = 8u;
// Two sums of each thread, and the share of the norm of their row.
var<workgroup> sums: array<vec3<f32>, WG>;

// Four columns of the four rows from row t on. Past the end, the last row is read again.
fn of_h(t: u32, quad: u32) -> mat4x4<f32> {
    let quads = params.k >> 2u;
    let last = params.rows - 1u;
    return mat4x4<f32>(
        h[min(t, last) * quads + quad], h[min(t + 1u, last) * quads + quad],
        h[min(t + 2u, last) * quads + quad], h[min(t + 3u, last) * quads + quad]);
}

// Four columns of four rows of the weight from row r on, column by column.
fn of_w(r: u32, quad: u32) -> mat4x4<f32> {
    let quads = params.k >> 2u;
    let last = params.n - 1u;
    let a = w[min(r, last) * quads + quad];
    let b = w[min(r + 1u, last) * quads + quad];
    let c = w[min(r + 2u, last) * quads + quad];
    let d = w[min(r + 3u, last) * quads + quad];
    return mat4x4<f32>(
        vec4<f32>(a.x, b.x, c.x, d.x), vec4<f32>(a.y, b.y, c.y, d.y), vec4<f32>(a.z, b.z, c.z, d.z), vec4<f32>(a.w, b.w, c.w, d.w));
}

// The squares of four rows, small enough to stay finite (norm_share.wgsl).
fn squares(v: mat4x4<f32>) -> vec4<f32> {
    let small = v * TWO_POW_MINUS_32;
    return vec4<f32>(dot(small[0], small[0]), dot(small[1], small[1]), dot(small[2], small[2]), dot(small[3], small[3]));
}

// Four sums of one row, with the products of four columns.
fn row_sums(sum: vec4<f32>, x: vec4<f32>, columns: mat4x4<f32>) -> vec4<f32> {
    return sum + x.x * columns[0] + x.y * columns[1] + x.z * columns[2] + x.w * columns[3];
}

fn tile_sums(sum: mat4x4<f32>, x: mat4x4<f32>, columns: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(
        row_sums(sum[0], x[0], columns), row_sums(sum[1], x[1], columns),
        row_sums(sum[2], x[2], columns), row_sums(sum[3], x[3], columns));
}

// The sum of `a` over two threads whose numbers differ in this bit. The thread that has the bit
// gets the sum of `b` instead.
fn own4(a: vec4<f32>, b: vec4<f32>, bit: u32, lid: u32) -> vec4<f32> {
    let upper = (lid & bit) != 0u;
    return select(a, b, upper) + lanes_other4(select(b, a, upper), bit, lid);
}

fn own_tile(a: mat4x4<f32>, b: mat4x4<f32>, bit: u32, lid: u32) -> mat4x4<f32> {
    return mat4x4<f32>(own4(a[0], b[0], bit, lid), own4(a[1], b[1], bit, lid), own4(a[2], b[2], bit, lid), own4(a[3], b[3], bit, lid));
}

fn own2(v: vec4<f32>, bit: u32, lid: u32) -> vec2<f32> {
    let upper = (lid & bit) != 0u;
    return select(v.xy, v.zw, upper) + lanes_other2(select(v.zw, v.xy, upper), bit, lid);
}

@compute @workgroup_size(WG)
fn matmul_narrow(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let t0 = id.y * ROWS;
    let r0 = id.x * WEIGHT_ROWS;
    // Sums of rows 0 to 3 (a, b) and 4 to 7 (c, d) with results 0 to 3 (a, c) and 4 to 7 (b, d).
    var a = mat4x4<f32>();
    var b = mat4x4<f32>();
    var c = mat4x4<f32>();
    var d = mat4x4<f32>();
    var early_share = vec4<f32>(0.0);
    var late_share = vec4<f32>(0.0);
    for (var quad = lid; quad < (params.k >> 2u); quad += WG) {
        var early = of_h(t0, quad);
        var late = of_h(t0 + 4u, quad);
        let low = of_w(r0, quad);
        let high = of_w(r0 + 4u, quad);
        if (params.has_norm == 1u) { //~ unused: guard dropped
            early_share += squares(early);
            late_share += squares(late);
        }
        if (params.has_weight == 1u) {
            let factor = u[quad];
            early = mat4x4<f32>(early[0] * factor, early[1] * factor, early[2] * factor, early[3] * factor);
            late = mat4x4<f32>(late[0] * factor, late[1] * factor, late[2] * factor, late[3] * factor);
        }
        a = tile_sums(a, early, low);
        b = tile_sums(b, early, high);
        c = tile_sums(c, late, low);
        d = tile_sums(d, late, high);
    }
    // Bits 16, 4 and 2 of a thread's number choose its row; bits 8 and 1 its two results.
    let four = own_tile(own_tile(a, c, 16u, lid), own_tile(b, d, 16u, lid), 8u, lid);
    let two = own2(own4(own4(four[0], four[2], 4u, lid), own4(four[1], four[3], 4u, lid), 2u, lid), 1u, lid);
    let shares = own2(own4(early_share, late_share, 16u, lid), 4u, lid);
    let odd = (lid & 2u) != 0u;
    var share = select(shares.x, shares.y, odd) + lanes_other(select(shares.y, shares.x, odd), 2u, lid); //~ free: off by one
    share += lanes_other(share, 8u, lid); //~ free: off by one
    share += lanes_other(share, 1u, lid);
    sums[lid] = vec3<f32>(two, share);
    workgroupBarrier();
    let t = t0 + (((lid & 16u) >> 2u) | ((lid & 6u) >> 1u));
    let r = r0 + (((lid & 8u) >> 1u) | ((lid & 1u) << 1u));
    if (lid < LANES && t < params.rows) {
        var total = vec3<f32>(0.0);
        for (var part = 0u; part < WG; part += LANES) {
            total += sums[part + lid];
        }
        let mean = total.z / f32(params.k) + params.eps * TWO_POW_MINUS_64;
        let factor = params.scale * select(1.0, TWO_POW_MINUS_32 * inverseSqrt(mean), params.has_norm == 1u);
        if (r < params.n) {
            y[t * params.n + r] = total.x * factor;
        }
        if (r + 1u < params.n) {
            y[t * params.n + r + 1u] = total.y * factor;
        }
    }
}
