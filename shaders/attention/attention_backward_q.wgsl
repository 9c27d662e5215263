// dq[t, n] = sum_s ds k[s] with ds = p (dy[t, n] . v[s] - delta) score' and p = exp(score - lse),
// over the keys s that row t sees: the derivative of attention by the queries
// q, dy, dq [rows, heads, head_dim], k, v [rows, kv_heads, head_dim] f32; stats [rows, heads, 2]
// f32 (lse, delta); spans [rows, 3] u32.
// One workgroup per row and head walks the keys in tiles of WG. For ds each thread has one key. For
// the sum each thread is a (group, quad): it adds one quad of the head for every group-th key.
// Needs: workgroup_number (grid.wgsl), keys_seen (span_of_row.wgsl), score_slope
// (score_slope.wgsl). Gives: params.window, spans, params.causal, params.scale, params.softcap.
struct Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> stats: array<f32>;
@group(0) @binding(6) var<storage, read> spans: array<u32>;
@group(0) @binding(7) var<storage, read_write> dq: array<vec4<f32>>;

const WG = 128u;
var<workgroup> query: array<vec4<f32>, 128>;
var<workgroup> slope: array<vec4<f32>, 128>;
var<workgroup> weights: array<f32, WG>;
var<workgroup> partial: array<vec4<f32>, WG>;

@compute @workgroup_size(WG)
fn attention_backward_q(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number >= params.rows * params.heads) {
        return;
    }
    let t = number / params.heads;
    let kv_head = (number % params.heads) / (params.heads / params.kv_heads);
    let quads = params.head_dim / 4u;
    let seen = keys_seen(t);
    let lse = stats[2u * number];
    let delta = stats[2u * number + 1u];
    if (lid < quads) { //~ surplus: comparison, guard dropped
        query[lid] = q[number * quads + lid];
        slope[lid] = dy[number * quads + lid];
    }
    workgroupBarrier();
    let groups = WG / quads;
    let group = lid / quads;
    let quad = lid % quads;
    var acc = vec4<f32>(0.0);
    for (var tile = seen.x; tile < seen.y; tile += WG) {
        let key = tile + lid;
        if (key < seen.y) { //~ surplus: comparison, guard dropped
            let base = (key * params.kv_heads + kv_head) * quads;
            var product = 0.0;
            var dp = 0.0;
            for (var i = 0u; i < quads; i++) {
                product += dot(query[i], k[base + i]);
                dp += dot(slope[i], v[base + i]);
            }
            let score = score_slope(product);
            weights[lid] = exp(score.x - lse) * (dp - delta) * score.y;
        }
        workgroupBarrier();
        if (group < groups) { //~ surplus: comparison, guard dropped
            for (var j = group; j < min(WG, seen.y - tile); j += groups) {
                acc += weights[j] * k[((tile + j) * params.kv_heads + kv_head) * quads + quad];
            }
        }
        workgroupBarrier();
    }
    partial[lid] = acc;
    workgroupBarrier();
    if (lid < quads) {
        var sum = partial[lid];
        for (var g = 1u; g < groups; g++) {
            sum += partial[g * quads + lid];
        }
        dq[number * quads + lid] = sum;
    }
}
