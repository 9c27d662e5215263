// partial as attention_deep.wgsl leaves it, for one row, with what comes before it: the norms and rotations of norm_rope_heads.wgsl, whose
// operands these are, and the append of this row's key and value
// Without append the states hold this row already. Every workgroup finishes its queries, and the one that has the last part the key and the
// value, which it attends to as they are stored.
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

fn appends() -> bool {
    return params.append == 1u;
}

fn step_rows() -> u32 {
    return 1u;
}

fn step_end(t: u32) -> u32 {
    return positions[t] + 1u;
}

fn finish_heads(first_head: u32, kv_head: u32, own: bool, stores: bool, lid: u32) {
    let quads = params.head_dim >> 2u;
    let count = select(HEADS, HEADS + 2u, own) * quads;
    for (var start = 0u; start < count; start += WG) {
        finish_head(start + lid, first_head, kv_head, start + lid < count, stores, lid);
    }
}

// Finishes a quad of a head in every thread; heads are within a workgroup's threads.
fn finish_head(at: u32, first_head: u32, kv_head: u32, inside: bool, stores: bool, lid: u32) {
    let quads = params.head_dim >> 2u;
    let part = at / quads;
    let quad = at % quads;
    let turns = head_turns(0u, quad, params.dim);
    var x = vec4<f32>(0.0);
    var weight = vec4<f32>(1.0);
    var normed = false;
    if (part < HEADS) {
        x = q[(first_head + part) * quads + quad];
        normed = params.norm_q == 1u;
        if (normed) {
            weight = wq[quad];
        }
    } else if (part == HEADS && inside) {
        x = k[kv_head * quads + quad];
        normed = params.norm_k == 1u;
        if (normed) {
            weight = wk[quad];
        }
    } else if (inside) {
        x = v[kv_head * quads + quad];
        normed = params.norm_v == 1u;
    }
    let squared = lanes_add4(vec4<f32>(squares4(vec2<f32>(0.0), x), 0.0, 0.0), quads, lid).xy;
    let factors = select(vec2<f32>(1.0), inverse_root(squared, f32(params.head_dim), params.eps), normed);
    x = x * factors.x * factors.y * weight;
    // Queries, then the key and the value.
    let place = min(at, (HEADS + 2u) * quads - 1u);
    if (inside) {
        gathered[place] = x;
    }
    workgroupBarrier();
    let half = params.dim >> 3u;
    if (part <= HEADS && quad < 2u * half) {
        let upper = quad >= half;
        let other = gathered[select(place + half, place - half, upper)];
        x = x * turns[0] + select(-other, other, upper) * turns[1];
    }
    var most = vec4<f32>(0.0);
    if (k_state_scaled) {
        workgroupBarrier();
        if (inside) {
            gathered[place] = abs(x);
        }
        workgroupBarrier();
        for (var i = 0u; i < 8u; i++) {
            most = max(most, gathered[(place & ~7u) + i]);
        }
    }
    let largest = max(max(most.x, most.y), max(most.z, most.w));
    let slot = sequences[0] * params.capacity + positions[0] % params.capacity;
    let width = params.kv_heads * params.head_dim;
    if (part == HEADS && inside) {
        if (stores) {
            k_state_store4(slot, width, kv_head * quads + quad, x, largest);
        }
        x = k_state_rounded(x, largest);
    } else if (part > HEADS && inside) {
        if (stores) {
            v_state_store4(slot, width, kv_head * quads + quad, x, largest);
        }
        x = v_state_rounded(x, largest);
    }
    workgroupBarrier();
    if (inside) {
        gathered[place] = x;
    }
    workgroupBarrier();
}

fn query_of(first_head: u32, n: u32, lane: u32, lanes: u32) -> Slice {
    return slice_of_gathered(n * (params.head_dim >> 2u), lane, lanes);
}

fn own_key(lane: u32, lanes: u32) -> Slice {
    return slice_of_gathered(HEADS * (params.head_dim >> 2u), lane, lanes);
}

fn own_value(lane: u32, lanes: u32) -> Slice {
    return slice_of_gathered((HEADS + 1u) * (params.head_dim >> 2u), lane, lanes);
}

@compute @workgroup_size(WG)
fn attention_deep_raw(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    attend(workgroup_number(id, extents), lid);
}
