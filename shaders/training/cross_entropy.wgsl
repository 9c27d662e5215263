// y[t] = (lse - logits[t, targets[t]], lse) with lse = ln sum_v exp(logits[t, v]); the loss is 0
// for a target of `vocabulary` or more
// logits [rows, vocabulary] f32, targets [rows] u32, y [rows, 2] f32. One workgroup per row.
// Needs: workgroup_number (grid.wgsl), reduce_max, reduce_add (reduce.wgsl). Gives: WG.
struct Params { vocabulary: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 256u;
const LOWEST = -3.4e38;

@compute @workgroup_size(WG)
fn cross_entropy(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let base = row * params.vocabulary;
    var largest = LOWEST;
    for (var v = lid; v < params.vocabulary; v += WG) {
        largest = max(largest, logits[base + v]); //~ cancels: sign
    }
    largest = reduce_max(largest, lid);
    var sum = 0.0;
    for (var v = lid; v < params.vocabulary; v += WG) {
        sum += exp(logits[base + v] - largest);
    }
    let rest = log(reduce_add(sum, lid));
    if (lid == 0u) {
        let target_id = targets[row];
        // The logit is subtracted from the largest logit first, because both may be far larger than
        // the loss.
        let own = logits[base + min(target_id, params.vocabulary - 1u)];
        y[2u * row] = select(0.0, (largest - own) + rest, target_id < params.vocabulary);
        y[2u * row + 1u] = largest + rest;
    }
}
