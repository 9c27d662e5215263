// y[t, r] = scale sum_k w[r, k] x[t, k] with x[t, k] = h[t, k] / sqrt(mean_k h[t, k]^2 + eps) u[k]
// if has_norm, otherwise x = h
// h, x [rows, k] f32, k a multiple of 4, w [n, k] f32, u [k] f32 (not read when has_weight = 0), y
// [rows, n] f32: several rows with a weight of few rows, such as a router, normed here or not. One
// workgroup makes 16 rows by 32 results. It stages 64 columns of both operands while its 4 groups
// of 32 threads multiply the 64 columns before them. The groups share the columns, because such
// products have few results; a thread has 4 x 4 of them. The sums of all groups are added at the
// end, where the factor of the norm is applied.
struct Params { k: u32, n: u32, rows: u32, has_norm: u32, has_weight: u32, eps: f32, scale: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> u: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 128u;
const LANES = 32u;
const PARTS = WG / LANES;
const ROWS = 16u;
const WEIGHT_ROWS = 32u;
// Results of a row, in fours.
const FOURS = WEIGHT_ROWS / 4u;
// Quads of columns that are staged at a time, and the pitch of a staged row. It is odd, so that
// eight rows start on different banks.
const DEPTH = 16u;
const PITCH = DEPTH + 1u;
// The rows of h, then those of w; at the end the sums, four results of a row by part, row and
// place.
var<workgroup> staged: array<vec4<f32>, (ROWS + WEIGHT_ROWS) * PITCH>;
// The shares of the norm by row and thread.
var<workgroup> shares: array<f32, ROWS * DEPTH>;

// Staged rows: a thread has every eighth one, in one column.
struct Ahead { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, e: vec4<f32>, f: vec4<f32> }

fn of_h(row: u32, quad: u32) -> vec4<f32> {
    let quads = params.k >> 2u;
    return select(vec4<f32>(0.0), h[min(row, params.rows - 1u) * quads + min(quad, quads - 1u)], quad < quads);
}

fn of_w(row: u32, quad: u32) -> vec4<f32> {
    let quads = params.k >> 2u;
    return select(vec4<f32>(0.0), w[min(row, params.n - 1u) * quads + min(quad, quads - 1u)], quad < quads);
}

fn ahead_load(t: u32, r: u32, quad: u32) -> Ahead {
    return Ahead(of_h(t, quad), of_h(t + 8u, quad), of_w(r, quad), of_w(r + 8u, quad), of_w(r + 16u, quad), of_w(r + 24u, quad));
}

@compute @workgroup_size(WG)
fn matmul_narrow(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let quads = params.k >> 2u;
    let t0 = id.y * ROWS;
    let r0 = id.x * WEIGHT_ROWS;
    // Staging: row `own` and every eighth row after it, column `column`.
    let own = lid / DEPTH;
    let column = lid % DEPTH;
    // Results: rows m.. of the tile by weights 4 n ..
    let part = lid / LANES;
    let m = 4u * ((lid % LANES) / FOURS);
    let n = lid % FOURS;
    var first = vec4<f32>(0.0);
    var second = vec4<f32>(0.0);
    var third = vec4<f32>(0.0);
    var fourth = vec4<f32>(0.0);
    var share = vec2<f32>(0.0);
    var ahead = ahead_load(t0 + own, r0 + own, column);
    for (var q0 = 0u; q0 < quads; q0 += DEPTH) {
        let quad = q0 + column;
        if (quad < quads) {
            share += vec2<f32>(norm_share(ahead.a, params.k, params.eps), norm_share(ahead.b, params.k, params.eps));
            if (params.has_weight == 1u) {
                ahead.a *= u[quad];
                ahead.b *= u[quad];
            }
        }
        workgroupBarrier();
        let at = own * PITCH + column;
        staged[at] = ahead.a;
        staged[at + 8u * PITCH] = ahead.b;
        staged[at + 16u * PITCH] = ahead.c;
        staged[at + 24u * PITCH] = ahead.d;
        staged[at + 32u * PITCH] = ahead.e;
        staged[at + 40u * PITCH] = ahead.f;
        workgroupBarrier();
        ahead = ahead_load(t0 + own, r0 + own, quad + DEPTH);
        for (var s = part; s < DEPTH; s += PARTS) {
            let a = staged[m * PITCH + s];
            let b = staged[(m + 1u) * PITCH + s];
            let c = staged[(m + 2u) * PITCH + s];
            let d = staged[(m + 3u) * PITCH + s];
            let p = staged[(ROWS + 4u * n) * PITCH + s];
            let q = staged[(ROWS + 4u * n + 1u) * PITCH + s];
            let r = staged[(ROWS + 4u * n + 2u) * PITCH + s];
            let v = staged[(ROWS + 4u * n + 3u) * PITCH + s];
            first += vec4<f32>(dot(p, a), dot(q, a), dot(r, a), dot(v, a));
            second += vec4<f32>(dot(p, b), dot(q, b), dot(r, b), dot(v, b));
            third += vec4<f32>(dot(p, c), dot(q, c), dot(r, c), dot(v, c));
            fourth += vec4<f32>(dot(p, d), dot(q, d), dot(r, d), dot(v, d));
        }
    }
    workgroupBarrier();
    let slot = (part * ROWS + m) * FOURS + n;
    staged[slot] = first;
    staged[slot + FOURS] = second;
    staged[slot + 2u * FOURS] = third;
    staged[slot + 3u * FOURS] = fourth;
    shares[own * DEPTH + column] = share.x;
    shares[(own + 8u) * DEPTH + column] = share.y;
    workgroupBarrier();
    let row = lid / FOURS;
    var total = vec4<f32>(0.0);
    for (var p = 0u; p < PARTS; p++) {
        total += staged[p * ROWS * FOURS + lid];
    }
    var whole = 0.0;
    for (var p = 0u; p < DEPTH; p++) {
        whole += shares[row * DEPTH + p];
    }
    total *= params.scale * select(1.0, TWO_POW_MINUS_32 * inverseSqrt(whole), params.has_norm == 1u);
    for (var c = 0u; c < 4u; c++) {
        let r = r0 + 4u * n + c;
        if (t0 + row < params.rows && r < params.n) {
            y[(t0 + row) * params.n + r] = total[c];
        }
    }
}
