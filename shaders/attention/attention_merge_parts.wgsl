// y[t, n] = sum_s e^(m_s - m) a_s / sum_s e^(m_s - m) l_s with m = max_s m_s, over the parts (a, m,
// l) of attention_split.wgsl or flash_part.wgsl, for many rows
// partial [rows, heads, splits, head_dim + 4] f32, y [rows, heads, head_dim], which parts_f32.wgsl
// and parts_f16.wgsl write. A part without keys has m = LOWEST and l = 0; its sums may be any bits.
// One thread per quad of y.
// Needs: workgroup_number (grid.wgsl), joined_store (parts_f16.wgsl or parts_f32.wgsl). Gives:
// params.row_pitch, params.slab_pitch. Bindings of pieces: y (parts_f32.wgsl), scales, halves
// (parts_f16.wgsl).
struct Params { heads: u32, head_dim: u32, rows: u32, splits: u32, row_pitch: u32, slab_pitch: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partial: array<vec4<f32>>;

const WG = 128u;
const LOWEST = -3.0e38;

@compute @workgroup_size(WG)
fn attention_merge_parts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let at = workgroup_number(id, extents) * WG + lid;
    let quads = params.head_dim >> 2u;
    if (at >= params.rows * params.heads * quads) {
        return;
    }
    let start = at / quads * params.splits * (quads + 1u);
    var most = LOWEST;
    for (var s = 0u; s < params.splits; s++) {
        most = max(most, partial[start + s * (quads + 1u) + quads].x);
    }
    var sum = vec4<f32>(0.0);
    var total = 0.0;
    for (var s = 0u; s < params.splits; s++) {
        let part = start + s * (quads + 1u);
        let beside = partial[part + quads];
        let factor = exp(beside.x - most);
        sum += select(vec4<f32>(0.0), factor * partial[part + at % quads], beside.y > 0.0);
        total += factor * beside.y;
    }
    joined_store(at, params.heads * quads, sum / total);
}
