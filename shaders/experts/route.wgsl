// experts[t] = the k experts with the largest logits[t], largest first; of equal logits the lower
// number comes first
// weights[t, j] = scale[e] exp(logits[t, e]) / sum exp(logits[t, ..]) for e = experts[t, j], with
// the sum over all experts or over the chosen ones (normalize) (Shazeer et al. 2017, arXiv
// 1701.06538)
// logits [rows, dim] f32, scale [dim] f32 (if has_scale), experts [rows, k] u32, weights [rows, k]
// f32. One workgroup per row. A thread ranks every WG-th expert: the rank is the number of experts
// before it. Keys are integers, so every driver finds the same order.
struct Params { dim: u32, rows: u32, k: u32, normalize: u32, has_scale: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> scale: array<f32>;
@group(0) @binding(3) var<storage, read_write> experts: array<u32>;
@group(0) @binding(4) var<storage, read_write> weights: array<f32>;

const WG = 128u;
// Most experts per thread; WG times this is ops::route::MAX_EXPERTS.
const EACH = 8u;
const LOWEST = -3.4028234e38;
// Four keys at a time. Keys of no expert are zero, the lowest, because workgroup memory starts as
// zeros.
var<workgroup> keys: array<vec4<u32>, EACH * WG / 4u>;

@compute @workgroup_size(WG)
fn route(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var most = LOWEST;
    for (var e = lid; e < params.dim; e += WG) {
        let logit = logits[base + e];
        most = max(most, logit);
        keys[e >> 2u][e & 3u] = order_key(bitcast<u32>(logit));
    }
    let largest = reduce_max(most, lid);
    var ranks = array<u32, EACH>();
    var part = 0.0;
    for (var j = 0u; j < EACH && lid + j * WG < params.dim; j++) { //~ never: comparison
        ranks[j] = rank(lid + j * WG);
        if (ranks[j] < params.k || params.normalize == 0u) {
            part += exp(logits[base + lid + j * WG] - largest);
        }
    }
    let sum = reduce_add(part, lid);
    for (var j = 0u; j < EACH && lid + j * WG < params.dim; j++) { //~ never: comparison
        if (ranks[j] < params.k) {
            let e = lid + j * WG;
            let at = row * params.k + ranks[j];
            let weight = exp(logits[base + e] - largest) / sum;
            experts[at] = e;
            weights[at] = select(weight, weight * scale[e], params.has_scale == 1u);
        }
    }
}

// The number of experts that come before this one. The reduction before it orders the keys.
fn rank(expert: u32) -> u32 {
    let mine = vec4<u32>(keys[expert >> 2u][expert & 3u]);
    var before = vec4<u32>(0u);
    for (var e = 0u; e < params.dim; e += 4u) {
        let key = keys[e >> 2u];
        let earlier = vec4<u32>(e) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(expert);
        // Larger, or equal and earlier.
        before += select(vec4<u32>(key > mine), vec4<u32>(key >= mine), earlier);
    }
    return before.x + before.y + before.z + before.w;
}
