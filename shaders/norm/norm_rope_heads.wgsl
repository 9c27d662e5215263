// y[t] = rope(norm(q[t])), and norm_rope_append.wgsl of k and v: all heads of a step in one kernel
// q, y [rows, q_heads, head_dim], k, v [rows, heads, head_dim] f32, head_dim a multiple of 32, at
// most 512; norms as in norm_rope.wgsl, of q and k with the weights wq and wk (if norm_q, norm_k),
// of v without a weight (if norm_v); table [rows, dim / 2, 2] f32, dim a multiple of 8; positions,
// sequences [rows] u32; states in any KV type. `lanes` threads for each head of q, of k and of v,
// as in norm_rope.wgsl, and whole workgroups for each row.
// Needs: workgroup_number (grid.wgsl), head_turns (head_turns.wgsl), head_normed, head_turned
// (heads_quads.wgsl), k_state_scaled, k_state_store4 (the type of k_state), head_most
// (head_most.wgsl), v_state_store4 (the type of v_state). Gives: WG, table.
struct Params {
    q_heads: u32, heads: u32, head_dim: u32, dim: u32, rows: u32, capacity: u32, lanes: u32, exchange: u32, norm_q: u32, norm_k: u32, norm_v: u32, eps: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> wq: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> wk: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> table: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read> positions: array<u32>;
@group(0) @binding(8) var<storage, read> sequences: array<u32>;
@group(0) @binding(9) var<storage, read_write> k_state: array<vec4<u32>>;
@group(0) @binding(10) var<storage, read_write> v_state: array<vec4<u32>>;
@group(0) @binding(11) var<storage, read_write> y: array<vec4<f32>>;

const WG = 128u;

@compute @workgroup_size(WG)
fn norm_rope_heads(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    // All heads of a workgroup are of one row.
    let first = workgroup_number(id, extents) * (WG / params.lanes);
    let each = params.q_heads + 2u * params.heads;
    let t = first / each;
    if (t >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let n = (first + lid / params.lanes) % each;
    let queries = n < params.q_heads;
    let keys = !queries && n < params.q_heads + params.heads;
    // The number of the head within q, k or v.
    let head_of = select(select(n - params.q_heads - params.heads, n - params.q_heads, keys), n, queries);
    let quads = params.head_dim >> 2u;
    let own = lid % params.lanes;
    let inside = own < quads;
    let quad = min(own, quads - 1u);
    let at = (t * select(params.heads, params.q_heads, queries) + head_of) * quads + quad;
    let turns = head_turns(t, quad, params.dim);
    let slot = sequences[t] * params.capacity + positions[t] % params.capacity;
    var x = vec4<f32>(0.0);
    var weight = vec4<f32>(1.0);
    var normed = params.norm_v == 1u;
    if (queries) {
        x = q[at];
        normed = params.norm_q == 1u;
        if (normed) { //~ unused: guard dropped
            weight = wq[quad];
        }
    } else if (keys) {
        x = k[at];
        normed = params.norm_k == 1u;
        if (normed) { //~ unused: guard dropped
            weight = wk[quad];
        }
    } else {
        x = v[at];
    }
    x = select(vec4<f32>(0.0), x, inside);
    if (params.norm_q + params.norm_k + params.norm_v > 0u) { //~ unused: comparison, guard dropped
        x = select(x, head_normed(x, params.head_dim, params.eps, params.lanes, lid) * weight, normed);
    }
    x = select(x, head_turned(x, quad, params.dim, turns, lid), queries || keys);
    var most = 0.0;
    if (k_state_scaled) {
        most = head_most(x, lid);
    }
    if (!inside) {
        return;
    }
    if (queries) {
        y[at] = x;
    } else if (keys) {
        k_state_store4(slot, params.heads * params.head_dim, head_of * quads + quad, x, most);
    } else {
        v_state_store4(slot, params.heads * params.head_dim, head_of * quads + quad, x, most);
    }
}
