// k_state[slot(t)] = rope(norm(k[t])), v_state[slot(t)] = norm(v[t]), with slot(t) = sequences[t] *
// capacity + positions[t] mod capacity
// k, v [rows, heads, head_dim] f32, head_dim a multiple of 32, at most 512; norms as in
// norm_rope.wgsl, of k with the weight w (if norm_k), of v without a weight (if norm_v); table
// [rows, dim / 2, 2] f32, dim a multiple of 8; positions, sequences [rows] u32; states in any KV
// type. `lanes` threads for each head of k and of v, as in norm_rope.wgsl, and whole workgroups for
// each row.
// Needs: workgroup_number (grid.wgsl), head_turns (head_turns.wgsl), head_normed, head_turned
// (heads_quads.wgsl), k_state_scaled, k_state_store4 (the type of k_state), head_most
// (head_most.wgsl), v_state_store4 (the type of v_state). Gives: WG, table.
struct Params { heads: u32, head_dim: u32, dim: u32, rows: u32, capacity: u32, lanes: u32, exchange: u32, norm_k: u32, norm_v: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> table: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> positions: array<u32>;
@group(0) @binding(6) var<storage, read> sequences: array<u32>;
@group(0) @binding(7) var<storage, read_write> k_state: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> v_state: array<vec4<u32>>;

const WG = 128u;

@compute @workgroup_size(WG)
fn norm_rope_append(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    // All heads of a workgroup are of one row.
    let first = workgroup_number(id, extents) * (WG / params.lanes);
    let t = first / (2u * params.heads);
    if (t >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let number = first + lid / params.lanes;
    let keys = number % (2u * params.heads) < params.heads;
    let n = number % params.heads;
    let quads = params.head_dim >> 2u;
    let own = lid % params.lanes;
    let inside = own < quads;
    let quad = min(own, quads - 1u);
    let at = (t * params.heads + n) * quads + quad;
    var x = select(vec4<f32>(0.0), select(v[at], k[at], keys), inside);
    let turns = head_turns(t, quad, params.dim);
    let slot = sequences[t] * params.capacity + positions[t] % params.capacity;
    var weight = vec4<f32>(1.0);
    if (keys && params.norm_k == 1u) {
        weight = w[quad];
    }
    if (params.norm_k + params.norm_v > 0u) { //~ unused: comparison, guard dropped
        let normed = head_normed(x, params.head_dim, params.eps, params.lanes, lid) * weight;
        x = select(x, normed, select(params.norm_v, params.norm_k, keys) == 1u);
    }
    x = select(x, head_turned(x, quad, params.dim, turns, lid), keys);
    var most = 0.0;
    if (k_state_scaled) {
        most = head_most(x, lid);
    }
    if (inside && keys) {
        k_state_store4(slot, params.heads * params.head_dim, n * quads + quad, x, most);
    } else if (inside) {
        v_state_store4(slot, params.heads * params.head_dim, n * quads + quad, x, most);
    }
}
