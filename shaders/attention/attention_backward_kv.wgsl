// dk[s, g] = sum_t,n ds q[t, n], dv[s, g] = sum_t,n p dy[t, n] with p and ds as in
// attention_backward_q.wgsl, over the rows t that see key s and the query heads n of kv head g: the
// derivatives of attention by the keys and values
// q, dy [rows, heads, head_dim], k, v, dk, dv [rows, kv_heads, head_dim] f32; stats [rows, heads,
// 2] f32 (lse, delta); spans [rows, 3] u32.
// One workgroup per key and kv head walks the pairs (row, query head) in tiles of WG. For p and ds
// each thread has one pair. For the sums each thread is a (group, quad).
// Needs: workgroup_number (grid.wgsl), score_slope (score_slope.wgsl), keys_seen
// (span_of_row.wgsl). Gives: params.window, spans, params.causal, params.scale, params.softcap.
struct Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> stats: array<f32>;
@group(0) @binding(6) var<storage, read> spans: array<u32>;
@group(0) @binding(7) var<storage, read_write> dk: array<vec4<f32>>;
@group(0) @binding(8) var<storage, read_write> dv: array<vec4<f32>>;

const WG = 128u;
var<workgroup> key: array<vec4<f32>, 128>;
var<workgroup> value: array<vec4<f32>, 128>;
var<workgroup> weights: array<vec2<f32>, WG>;
var<workgroup> partial_k: array<vec4<f32>, WG>;
var<workgroup> partial_v: array<vec4<f32>, WG>;

@compute @workgroup_size(WG)
fn attention_backward_kv(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number >= params.rows * params.kv_heads) {
        return;
    }
    let s = number / params.kv_heads;
    let per_kv = params.heads / params.kv_heads;
    let head = (number % params.kv_heads) * per_kv;
    let quads = params.head_dim / 4u;
    // The rows that may see a key begin with the key's own row, unless attention is bidirectional.
    let start = select(spans[3u * s], s, params.causal == 1u); //~ weightless: off by one
    let last = spans[3u * s + 1u];
    let end = select(last, min(last, s + params.window), params.window > 0u);
    let pairs = (max(end, start) - start) * per_kv;
    if (lid < quads) { //~ surplus: comparison, guard dropped
        key[lid] = k[number * quads + lid];
        value[lid] = v[number * quads + lid];
    }
    workgroupBarrier();
    let groups = WG / quads;
    let group = lid / quads;
    let quad = lid % quads;
    var acc_k = vec4<f32>(0.0);
    var acc_v = vec4<f32>(0.0);
    for (var tile = 0u; tile < pairs; tile += WG) {
        let pair = tile + lid;
        if (pair < pairs) { //~ surplus: comparison, guard dropped
            let t = start + pair / per_kv;
            let row = t * params.heads + head + pair % per_kv;
            var product = 0.0;
            var dp = 0.0;
            for (var i = 0u; i < quads; i++) {
                product += dot(q[row * quads + i], key[i]);
                dp += dot(dy[row * quads + i], value[i]);
            }
            let score = score_slope(product);
            let p = select(0.0, exp(score.x - stats[2u * row]), s < keys_seen(t).y);
            weights[lid] = vec2<f32>(p, p * (dp - stats[2u * row + 1u]) * score.y);
        }
        workgroupBarrier();
        if (group < groups) { //~ surplus: comparison, guard dropped
            for (var j = group; j < min(WG, pairs - tile); j += groups) {
                let row = (start + (tile + j) / per_kv) * params.heads + head + (tile + j) % per_kv;
                acc_k += weights[j].y * q[row * quads + quad];
                acc_v += weights[j].x * dy[row * quads + quad];
            }
        }
        workgroupBarrier();
    }
    partial_k[lid] = acc_k;
    partial_v[lid] = acc_v;
    workgroupBarrier();
    if (lid < quads) {
        var sum_k = partial_k[lid];
        var sum_v = partial_v[lid];
        for (var g = 1u; g < groups; g++) {
            sum_k += partial_k[g * quads + lid];
            sum_v += partial_v[g * quads + lid];
        }
        dk[number * quads + lid] = sum_k;
        dv[number * quads + lid] = sum_v;
    }
}
