// y[t, n] = ln sum_s exp(cap(scale q[t, n] . k[s])) over the keys s that row t sees
// q [rows, heads, head_dim], k [rows, kv_heads, head_dim] f32; spans [rows, 3] u32; y [rows, heads]
// f32. One workgroup per row and head walks the keys in tiles of WG, one per thread, with a running
// maximum (Dao et al. 2022, arXiv 2205.14135).
// Needs: workgroup_number (grid.wgsl), keys_seen (span_of_row.wgsl), score_slope
// (score_slope.wgsl), reduce_max, reduce_add (reduce.wgsl). Gives: params.window, spans,
// params.causal, params.scale, params.softcap, WG.
struct Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> spans: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 128u;
const LOWEST = -3.0e38;
var<workgroup> query: array<vec4<f32>, 128>;

@compute @workgroup_size(WG)
fn attention_lse(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number >= params.rows * params.heads) {
        return;
    }
    let t = number / params.heads;
    let kv_head = (number % params.heads) / (params.heads / params.kv_heads);
    let quads = params.head_dim / 4u;
    let seen = keys_seen(t);
    if (lid < quads) { //~ surplus: comparison, guard dropped
        query[lid] = q[number * quads + lid];
    }
    workgroupBarrier();
    var largest = LOWEST;
    var total = 0.0;
    for (var tile = seen.x; tile < seen.y; tile += WG) {
        let key = tile + lid;
        var s = LOWEST;
        if (key < seen.y) { //~ weightless: comparison, guard dropped
            var product = 0.0;
            for (var i = 0u; i < quads; i++) {
                product += dot(query[i], k[(key * params.kv_heads + kv_head) * quads + i]);
            }
            s = score_slope(product).x;
        }
        let new_largest = max(largest, reduce_max(s, lid));
        let p = select(0.0, exp(s - new_largest), key < seen.y);
        total = total * exp(largest - new_largest) + reduce_add(p, lid);
        largest = new_largest;
    }
    if (lid == 0u) {
        y[number] = select(0.0, largest + log(total), seen.x < seen.y); //~ never: comparison
    }
}
