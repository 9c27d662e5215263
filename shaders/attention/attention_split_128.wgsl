// partial as in attention_split.wgsl, with the same operands, for heads of 128, through
// split_keys.wgsl
// The queries are finished, and the states hold all keys. One workgroup for HEADS heads that share
// their keys and for one part.
// Needs: HEADS (the variant), gathered, TILE, WG, attend (split_keys.wgsl), workgroup_number
// (grid.wgsl). Gives: params.softcap, params.head_dim, params.heads, params.splits, step_end,
// positions, params.window, params.kv_heads, appends, params.capacity, sequences, finish_heads,
// params.scale, partial, q.
struct Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, exchange: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> partial: array<vec4<f32>>;

// Whether this kernel appends this row's key and value.
fn appends() -> bool {
    return false;
}

fn step_end() -> u32 {
    return ends[0] + params.causal;
}

fn finish_heads(first_head: u32, kv_head: u32, own: bool, stores: bool, lid: u32) {
    if (lid < 32u * HEADS) { //~ surplus: comparison, off by one, guard dropped
        gathered[TILE + lid] = q[32u * first_head + lid];
    }
    workgroupBarrier();
}

@compute @workgroup_size(WG)
fn attention_split_128(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    attend(workgroup_number(id, extents), lid);
}
