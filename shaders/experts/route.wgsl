// experts[t] = the `chosen` experts with the largest logits[t], largest first; of equal logits the
// lower number comes first
// weights[t, j] = scale[e] exp(logits[t, e]) / sum exp(logits[t, ..]) for e = experts[t, j], with
// the sum over all experts or over the chosen ones (normalize) (Shazeer et al. 2017, arXiv
// 1701.06538)
// logits [rows, count] f32, scale [count] f32 (if has_scale), experts [rows, chosen] u32, weights
// [rows, chosen] f32. One workgroup per row (pieces/choose.wgsl).
// Needs: workgroup_number (grid.wgsl), choose (choose.wgsl). Gives: MOST, params.count, WG, logits,
// PARTS, parts_add, params.chosen, params.normalize, experts, weights, scale, params.has_scale.
struct Params { count: u32, rows: u32, chosen: u32, normalize: u32, has_scale: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> scale: array<f32>;
@group(0) @binding(3) var<storage, read_write> experts: array<u32>;
@group(0) @binding(4) var<storage, read_write> weights: array<f32>;

const WG = 128u;
// MOST is MAX_EXPERTS of experts/route.rs.
const MOST = 1024u;
// A thread ranks an expert by itself.
const PARTS = 1u;

fn parts_add(v: u32, lid: u32) -> u32 {
    return v;
}

@compute @workgroup_size(WG)
fn route(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    choose(row, lid);
}
