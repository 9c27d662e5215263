// d[t, v] = weights[t] (exp(logits[t, v] - lse[t]) - [v = targets[t]]), zeros for a target of
// `vocabulary` or more: the derivative of the weighted losses of cross_entropy.wgsl
// logits, d [rows, vocabulary] f32, targets [rows] u32, weights [rows] f32, losses [rows, 2] f32
// (loss, lse). One thread per element.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { vocabulary: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<u32>;
@group(0) @binding(3) var<storage, read> weights: array<f32>;
@group(0) @binding(4) var<storage, read> losses: array<f32>;
@group(0) @binding(5) var<storage, read_write> d: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn cross_entropy_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    let row = i / params.vocabulary;
    if (row >= params.rows) {
        return;
    }
    let target_id = targets[row];
    let p = exp(logits[i] - losses[2u * row + 1u]);
    let one = select(0.0, 1.0, i % params.vocabulary == target_id);
    d[i] = select(0.0, weights[row] * (p - one), target_id < params.vocabulary);
}
