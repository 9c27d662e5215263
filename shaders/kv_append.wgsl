// k_state[slot(t)] = k[t], v_state[slot(t)] = v[t], with slot(t) = sequences[t] * capacity + positions[t] mod capacity
// k, v [rows, width] f32; positions, sequences [rows] u32; states in any KV type. One thread encodes 32 elements of
// one row of k or of v.
struct Params { width: u32, rows: u32, capacity: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
@group(0) @binding(3) var<storage, read> positions: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read_write> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> v_state: array<vec4<u32>>;

const WG = 64u;

@compute @workgroup_size(WG)
fn kv_append(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    let blocks = (params.width + 31u) / 32u;
    let t = i / (2u * blocks);
    if (t >= params.rows) {
        return;
    }
    let slot = sequences[t] * params.capacity + positions[t] % params.capacity;
    let block = (i >> 1u) % blocks;
    let keys = (i & 1u) == 0u;
    var values = array<vec4<f32>, 8>();
    for (var j = 0u; j < min(32u, params.width - 32u * block); j++) {
        let at = t * params.width + 32u * block + j;
        if (keys) {
            values[j >> 2u][j & 3u] = k[at];
        } else {
            values[j >> 2u][j & 3u] = v[at];
        }
    }
    if (keys) {
        k_state_store32(slot, params.width, block, values);
    } else {
        v_state_store32(slot, params.width, block, values);
    }
}
