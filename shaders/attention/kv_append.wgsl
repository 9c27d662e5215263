// k_state[slot(t)] = k[t], v_state[slot(t)] = v[t], with slot(t) = sequences[t] * capacity +
// positions[t] mod capacity
// k, v [rows, width] f32; positions, sequences [rows] u32; states in any KV type. One workgroup per
// row; a thread encodes 32 elements of k or of v at a time.
// Needs: workgroup_number (grid.wgsl), k_state_store32 (the type of k_state), v_state_store32 (the
// type of v_state). Gives: nothing.
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
    let t = workgroup_number(id, extents);
    if (t >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let blocks = (params.width + 31u) / 32u;
    let slot = sequences[t] * params.capacity + positions[t] % params.capacity;
    for (var i = lid; i < 2u * blocks; i += WG) {
        let block = i >> 1u;
        let keys = (i & 1u) == 0u; //~ free: off by one
        var values = array<vec4<f32>, 8>();
        for (var j = 0u; j < min(32u, params.width - 32u * block); j++) {
            let at = t * params.width + 32u * block + j;
            values[j >> 2u][j & 3u] = select(v[at], k[at], keys);
        }
        if (keys) {
            k_state_store32(slot, params.width, block, values);
        } else {
            v_state_store32(slot, params.width, block, values);
        }
    }
}
