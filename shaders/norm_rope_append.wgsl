// k_state[slot(t)] = rope(norm(k[t])), v_state[slot(t)] = norm(v[t]), with slot(t) = sequences[t] * capacity + positions[t] mod capacity
// k, v [rows, heads, head_dim] f32, head_dim a multiple of 32; norms as in norm_rope.wgsl, of k with the weight w (if norm_k), of v without
// one (if norm_v); table [rows, dim / 2, 2] f32; positions, sequences [rows] u32; states in any KV type. One workgroup for each head of k and of v.
struct Params { heads: u32, head_dim: u32, dim: u32, rows: u32, capacity: u32, norm_k: u32, norm_v: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
@group(0) @binding(4) var<storage, read> table: array<f32>;
@group(0) @binding(5) var<storage, read> positions: array<u32>;
@group(0) @binding(6) var<storage, read> sequences: array<u32>;
@group(0) @binding(7) var<storage, read_write> k_state: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> v_state: array<vec4<u32>>;

const WG = 64u;

@compute @workgroup_size(WG)
fn norm_rope_append(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let t = number / (2u * params.heads);
    if (t >= params.rows) {
        return;
    }
    let keys = number % (2u * params.heads) < params.heads;
    let n = number % params.heads;
    let first = (t * params.heads + n) * params.head_dim;
    for (var d = lid; d < params.head_dim; d += WG) {
        head[d] = select(v[first + d], k[first + d], keys);
    }
    let normed = select(params.norm_v, params.norm_k, keys) == 1u;
    if (normed) {
        head_norm(params.head_dim, params.eps, keys, lid);
    }
    workgroupBarrier();
    if (keys) {
        // Every thread rotates its elements before any is overwritten.
        var own: array<f32, 8>;
        for (var d = lid; d < params.head_dim; d += WG) {
            own[d / WG] = head_rotated(t, d, params.dim);
        }
        workgroupBarrier();
        for (var d = lid; d < params.head_dim; d += WG) {
            head[d] = own[d / WG];
        }
        workgroupBarrier();
    }
    let width = params.heads * params.head_dim;
    let slot = sequences[t] * params.capacity + positions[t] % params.capacity;
    for (var block = lid; block < (params.head_dim >> 5u); block += WG) {
        var values: array<vec4<f32>, 8>;
        for (var j = 0u; j < 32u; j++) {
            values[j >> 2u][j & 3u] = head[32u * block + j];
        }
        let at = n * (params.head_dim >> 5u) + block;
        if (keys) {
            k_state_store32(slot, width, at, values);
        } else {
            v_state_store32(slot, width, at, values);
        }
    }
}
