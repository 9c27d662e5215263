// y[t, n] = sum_s p[s] v[s], p = softmax_s(cap(scale q[t, n] . k[s])) over the keys s that row t
// may see
// q, y [rows, heads, head_dim] f32; positions, ends, sequences [rows] u32. Row t sees the keys of
// its sequence (keys_of_cache.wgsl) or of its document (keys_of_step.wgsl), below ends[t] + causal
// and, with a window, at or after positions[t] + 1 - window. k and v: states [S, capacity,
// kv_heads, head_dim] in any KV type, or values [rows, kv_heads, head_dim] f32. cap(x) = softcap
// tanh(x / softcap) when softcap > 0.
// One workgroup per row and head walks the keys in tiles of WG with a running maximum (Dao et al.
// 2022, arXiv 2205.14135). For the scores each thread has one key. For the values each thread is a
// (group, quad): it adds one quad of the head for every group-th key of the tile.
// Needs: k_state_load4 (the type of k_state), workgroup_number (grid.wgsl), keys_of, first_key,
// start_of_keys, row_of_key (slot keys), reduce_max, reduce_add (reduce.wgsl), v_state_load4 (the
// type of v_state). Gives: sequences, params.capacity, WG.
struct Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> y: array<vec4<f32>>;

const WG = 128u;
const LOWEST = -3.0e38;
var<workgroup> query: array<vec4<f32>, 128>;
var<workgroup> weights: array<f32, WG>;
var<workgroup> partial: array<vec4<f32>, WG>;

fn score(key: u32, quads: u32, head: u32, width: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < quads; i++) {
        sum += dot(query[i], k_state_load4(key, width, head * quads + i));
    }
    let s = sum * params.scale;
    // Clamped: some drivers return NaN from tanh of large arguments. tanh(15) rounds to 1.
    return select(s, params.softcap * tanh(clamp(s / max(params.softcap, 1e-30), -15.0, 15.0)), params.softcap > 0.0);
}

@compute @workgroup_size(WG)
fn attention(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number >= params.rows * params.heads) {
        return;
    }
    let t = number / params.heads;
    let kv_head = (number % params.heads) / (params.heads / params.kv_heads);
    let quads = params.head_dim / 4u;
    let width = params.kv_heads * params.head_dim;
    let base = keys_of(t);
    let end = ends[t] + params.causal;
    let here = positions[t] + 1u;
    let start = max(first_key(t), select(0u, here - min(here, params.window), params.window > 0u));
    if (lid < quads) { //~ dropped: comparison, guard dropped
        query[lid] = q[number * quads + lid];
    }
    workgroupBarrier();
    let groups = WG / quads;
    let group = lid / quads;
    let quad = lid % quads;
    var largest = LOWEST;
    var total = 0.0;
    var acc = vec4<f32>(0.0);
    for (var tile = start; tile < end; tile += WG) {
        let first = start_of_keys(tile);
        var s = LOWEST;
        if (tile + lid < end) { //~ cancels: comparison, guard dropped
            s = score(row_of_key(base, first, lid), quads, kv_head, width);
        }
        let new_largest = max(largest, reduce_max(s, lid));
        let p = select(0.0, exp(s - new_largest), tile + lid < end);
        weights[lid] = p;
        let shrink = exp(largest - new_largest);
        // The barriers inside the reduction make the weights visible.
        total = total * shrink + reduce_add(p, lid);
        acc *= shrink;
        largest = new_largest;
        if (group < groups) { //~ surplus: comparison, guard dropped
            for (var j = group; j < min(WG, end - tile); j += groups) {
                acc += weights[j] * v_state_load4(row_of_key(base, first, j), width, kv_head * quads + quad);
            }
        }
        workgroupBarrier(); //~ synced: barrier dropped
    }
    partial[lid] = acc;
    workgroupBarrier();
    if (lid < quads) {
        var sum = partial[lid];
        for (var g = 1u; g < groups; g++) {
            sum += partial[g * quads + lid];
        }
        y[number * quads + lid] = sum / total;
    }
}
