// y[t, n] = ln sum_s exp(cap(scale q[t, n] . k[s])) over the keys s that row t sees, with
// cooperative matrices of f16 and f32 sums
// q [rows, heads, HEAD], k [rows, kv_heads, HEAD] f32, spans [rows, 3] u32, y [rows, heads] f32.
// One workgroup has up to 32 queries: neighbouring rows with all heads that share a kv head. It
// walks their keys, KEYS at a time (tile32_rows.wgsl, tile32_scores.wgsl). Each of a query's
// threads keeps the largest score of its own keys and its own sum (Dao et al. 2022, arXiv
// 2205.14135).
// Needs: score_slope (score_slope.wgsl), WG, QUERIES, Queries, keys_of_rows, PER_ROW, row_of,
// SLICES, stage_q, stage_k, exists, place (tile32_rows.wgsl), keys_seen (span_of_row.wgsl),
// Products, multiply, leave_products, scores, SCORES (tile32_scores.wgsl). Gives: KINDS, KEYS,
// params.heads, params.kv_heads, q, k, params.window, spans, params.causal, params.scale,
// params.softcap.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { heads: u32, kv_heads: u32, causal: u32, window: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> spans: array<u32>;
@group(0) @binding(4) var<storage, read> step_rows: array<u32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const KINDS = 1u;
const KEYS = 64u;
const LOWEST = -3.0e38;
struct Softmax { most: f32, total: f32 }

// The sum of two sums of exponentials.
fn joined(a: Softmax, b: Softmax) -> Softmax {
    let most = max(a.most, b.most);
    return Softmax(most, a.total * exp(a.most - most) + b.total * exp(b.most - most));
}

// The sum over four keys of which the query sees some.
fn of_keys(products: vec4<f32>, seen: vec4<bool>) -> Softmax {
    let all = vec4<f32>(score_slope(products.x).x, score_slope(products.y).x, score_slope(products.z).x, score_slope(products.w).x);
    let s = select(vec4<f32>(LOWEST), all, seen);
    let most = max(max(s.x, s.y), max(s.z, s.w));
    let p = select(vec4<f32>(0.0), exp(s - most), seen);
    return Softmax(most, (p.x + p.y) + (p.z + p.w));
}

@compute @workgroup_size(WG)
fn attention_lse_flash(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let group = params.heads / params.kv_heads;
    let tokens = QUERIES / group;
    let t0 = id.y * tokens;
    let count = min(tokens, step_rows[0] - t0);
    let tile = Queries(t0, 0u, count * group, id.x);
    let keys = keys_of_rows(t0, count);
    let row = lid / PER_ROW;
    let seen = keys_seen(row_of(tile, row));
    var softmax = Softmax(LOWEST, 0.0);
    for (var key0 = keys.x; key0 < keys.y; key0 += KEYS) {
        var sums = Products();
        for (var slice = 0u; slice < SLICES; slice++) {
            workgroupBarrier();
            if (SLICES > 1u || key0 == keys.x) { //~ twice: comparison, guard dropped
                stage_q(tile, slice, lid);
            }
            stage_k(key0, keys.y, id.x, slice, lid);
            workgroupBarrier();
            sums = multiply(sums, subgroup);
        }
        leave_products(sums, subgroup);
        workgroupBarrier();
        for (var quad = lid % PER_ROW; quad < KEYS / 4u; quad += PER_ROW) {
            let places = vec4<u32>(key0 + 4u * quad) + vec4<u32>(0u, 1u, 2u, 3u);
            let within = (places >= vec4<u32>(seen.x)) & (places < vec4<u32>(seen.y));
            softmax = joined(softmax, of_keys(scores[row * SCORES + quad], within));
        }
    }
    for (var across = 1u; across < PER_ROW; across <<= 1u) {
        let other = Softmax(subgroupShuffleXor(softmax.most, across), subgroupShuffleXor(softmax.total, across));
        softmax = joined(softmax, other);
    }
    if (lid % PER_ROW == 0u && exists(tile, row)) { //~ free: off by one
        y[place(tile, row)] = select(0.0, softmax.most + log(softmax.total), seen.x < seen.y); //~ never: comparison
    }
}
