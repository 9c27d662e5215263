// y[t, n] = sum_s e^(m_s - m) a_s / sum_s e^(m_s - m) l_s with m = max_s m_s, over the parts (a, m, l) that attention_split.wgsl left
// partial [rows, heads, splits, head_dim + 2] f32, y [rows, heads, head_dim] f32; positions, ends [rows] u32 tell which parts hold keys.
// One workgroup per row and head.
struct Params { heads: u32, head_dim: u32, rows: u32, causal: u32, window: u32, splits: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partial: array<f32>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;

const WG = 128u;
var<workgroup> merged: array<f32, 512>;

@compute @workgroup_size(WG)
fn attention_merge(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let t = number / params.heads;
    if (t >= params.rows) {
        return;
    }
    let pitch = params.head_dim + 2u;
    let start = number * params.splits * pitch;
    var parts = 0u;
    var most = -3.0e38;
    for (var s = 0u; s < params.splits; s++) {
        let part = attention_part(ends[t] + params.causal, positions[t] + 1u, params.window, params.splits, s);
        if (part.x >= part.y) {
            break;
        }
        parts = s + 1u;
        most = max(most, partial[start + s * pitch + params.head_dim]);
    }
    for (var d = lid; d < params.head_dim; d += WG) {
        var sum = 0.0;
        var total = 0.0;
        for (var s = 0u; s < parts; s++) {
            let factor = exp(partial[start + s * pitch + params.head_dim] - most);
            sum += factor * partial[start + s * pitch + d];
            total += factor * partial[start + s * pitch + params.head_dim + 1u];
        }
        merged[d] = sum / total;
    }
    workgroupBarrier();
    merged_store(t, number, lid);
}
