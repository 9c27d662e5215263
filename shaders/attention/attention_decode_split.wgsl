// partial as in attention_split_128.wgsl, for one row, with the steps before it: the norms and
// rotations of norm_rope_heads.wgsl, whose operands these are, and the append of this row's key and
// value
// Without append the states hold this row already. Every workgroup finishes its own queries. The
// workgroup of the last part also finishes the key and the value, and uses them as the states store
// them.
// Needs: head_turns (head_turns.wgsl), HEADS (the variant), WG, gathered, TILE, attend
// (split_keys.wgsl), lanes_add, lanes_other4, lanes_other (lanes_near.wgsl), k_state_scaled,
// k_state_store4, k_state_rounded (the type of k_state), v_state_store4, v_state_rounded (the type
// of v_state), workgroup_number (grid.wgsl). Gives: params.softcap, params.head_dim, params.heads,
// params.splits, step_end, positions, params.window, params.kv_heads, appends, params.capacity,
// sequences, finish_heads, params.scale, partial, table, q.
struct Params {
    heads: u32, kv_heads: u32, head_dim: u32, dim: u32, capacity: u32, window: u32, splits: u32, append: u32, norm_q: u32, norm_k: u32, norm_v: u32,
    exchange: u32, eps: f32, scale: f32, softcap: f32,
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
@group(0) @binding(11) var<storage, read_write> partial: array<vec4<f32>>;

const TWO_POW_MINUS_32 = 2.3283064365386963e-10;
const TWO_POW_MINUS_64 = 5.421010862427522e-20;

fn appends() -> bool {
    return params.append == 1u;
}

fn step_end() -> u32 {
    return positions[0] + 1u;
}

// Every 32 threads finish one head, a quad each: the queries, then the key and the value.
fn finish_heads(first_head: u32, kv_head: u32, own: bool, stores: bool, lid: u32) {
    let lane = lid & 31u;
    let quad = 32u * kv_head + lane;
    let slot = sequences[0] * params.capacity + positions[0] % params.capacity;
    let half = params.dim >> 3u;
    let turns = head_turns(0u, lane, params.dim);
    let count = select(HEADS, HEADS + 2u, own); //~ surplus: off by one
    for (var first = 0u; first < count; first += WG / 32u) {
        let h = first + lid / 32u;
        var x = vec4<f32>(0.0);
        var weight = vec4<f32>(1.0);
        var normed = params.norm_v == 1u;
        if (h < HEADS) {
            x = q[32u * (first_head + h) + lane];
            normed = params.norm_q == 1u;
            if (normed) { //~ unused: guard dropped
                weight = wq[lane];
            }
        } else if (h == HEADS && own) {
            x = k[quad];
            normed = params.norm_k == 1u;
            if (normed) { //~ unused: guard dropped
                weight = wk[lane];
            }
        } else if (own) { //~ dropped: guard dropped
            x = v[quad];
        }
        let small = x * TWO_POW_MINUS_32;
        let squares = lanes_add(dot(small, small), 32u, lid); //~ rounded: off by one
        let factor = TWO_POW_MINUS_32 * inverseSqrt(squares / 128.0 + params.eps * TWO_POW_MINUS_64);
        x = select(x, x * weight * factor, normed);
        let upper = (lane & half) != 0u;
        let other = lanes_other4(x, half, lid);
        if (h <= HEADS && lane < 2u * half) {
            x = x * turns[0] + select(-other, other, upper) * turns[1];
        }
        var most = 0.0;
        if (k_state_scaled) {
            most = max(max(abs(x.x), abs(x.y)), max(abs(x.z), abs(x.w)));
            most = max(most, lanes_other(most, 1u, lid));
            most = max(most, lanes_other(most, 2u, lid));
            most = max(most, lanes_other(most, 4u, lid));
        }
        if (h >= HEADS && h < count) {
            x = stored(h, slot, quad, x, most, stores);
        }
        if (h < count) { //~ surplus: comparison, guard dropped
            gathered[TILE + 32u * h + lane] = x;
        }
    }
    workgroupBarrier();
}

// The quad of the key (h is HEADS) or of the value as the state stores it.
fn stored(h: u32, slot: u32, quad: u32, x: vec4<f32>, most: f32, stores: bool) -> vec4<f32> {
    let width = 128u * params.kv_heads;
    if (h == HEADS) {
        if (stores) { //~ twice: guard dropped
            k_state_store4(slot, width, quad, x, most);
        }
        return k_state_rounded(x, most);
    }
    if (stores) { //~ twice: guard dropped
        v_state_store4(slot, width, quad, x, most);
    }
    return v_state_rounded(x, most);
}

@compute @workgroup_size(WG)
fn attention_decode_split(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    attend(workgroup_number(id, extents), lid);
}
