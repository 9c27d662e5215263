// y[t, r] = sum_k w[r, k] x[t, k] + bias[r], other_y and third_y likewise: three products of
// matmul_tile64.wgsl in one kernel
// The operands are as in matmul_tile64.wgsl, with weights [n, k] and [other_n, k] of one format,
// and [third_n, k] of a format of its own. `biases` has a bit for each bias, the lowest for the
// first weight. Workgroups past the tiles of one weight have the tiles of the next.
// Needs: w_Four, w_held, w_tile64 (the format of w), other_held (the format of other), third_Four,
// third_held, third_tile64 (the format of third), WG, TILE (tile64_tiles.wgsl), GROUPS (the
// variant). Gives: params.rows, x, rows_of, tile64_store, scales, params.k.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, rows: u32, n: u32, other_n: u32, third_n: u32, biases: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> other: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> third: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> bias: array<f32>;
@group(0) @binding(7) var<storage, read> other_bias: array<f32>;
@group(0) @binding(8) var<storage, read> third_bias: array<f32>;
@group(0) @binding(9) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<storage, read_write> other_y: array<f32>;
@group(0) @binding(11) var<storage, read_write> third_y: array<f32>;

fn rows_of(which: u32) -> u32 {
    return select(select(params.n, params.other_n, which == 1u), params.third_n, which == 2u);
}

// Rows of the first two weights start at equal offsets, because format and length are equal.
fn w_four_of(rows: vec4<u32>, k: u32, unit: u32, which: u32) -> w_Four {
    if (which == 1u) {
        return w_Four(other_held(rows.x, k, unit), other_held(rows.y, k, unit), other_held(rows.z, k, unit), other_held(rows.w, k, unit));
    }
    return w_Four(w_held(rows.x, k, unit), w_held(rows.y, k, unit), w_held(rows.z, k, unit), w_held(rows.w, k, unit));
}

fn third_four_of(rows: vec4<u32>, k: u32, unit: u32, which: u32) -> third_Four {
    return third_Four(third_held(rows.x, k, unit), third_held(rows.y, k, unit), third_held(rows.z, k, unit), third_held(rows.w, k, unit));
}

fn tile64_store(t: u32, r: u32, which: u32, v: f32) {
    if (which == 1u) {
        other_y[t * params.other_n + r] = select(v, v + other_bias[r], (params.biases & 2u) != 0u);
    } else if (which == 2u) {
        third_y[t * params.third_n + r] = select(v, v + third_bias[r], (params.biases & 4u) != 0u);
    } else {
        y[t * params.n + r] = select(v, v + bias[r], (params.biases & 1u) != 0u);
    }
}

@compute @workgroup_size(WG)
fn matmul_tile64_triple(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let tile = TILE * GROUPS;
    let before_other = (params.n + tile - 1u) / tile;
    let before_third = before_other + (params.other_n + tile - 1u) / tile;
    if (id.x < before_third) {
        let second = id.x >= before_other;
        w_tile64((id.x - select(0u, before_other, second)) * tile, id.y, select(0u, 1u, second), lid, subgroup);
    } else {
        third_tile64((id.x - before_third) * tile, id.y, 2u, lid, subgroup);
    }
}
