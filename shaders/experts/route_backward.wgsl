// dlogits[t, e] = p[e] sum_j p[j] (q[e] - q[j]) over all experts j, with the shares p of the
// softmax of route.wgsl and q = scale dweights for chosen experts, else 0: the derivative by the
// logits through the weights; the choice is constant
// logits, dlogits [rows, dim] f32, scale [dim] f32 (if has_scale), experts [rows, k] u32, dweights
// [rows, k] f32. One workgroup per row, with some experts for each thread. The differences q[e] -
// q[j] are added one by one: with one large share, the difference of sums would lose its digits.
// Needs: workgroup_number (grid.wgsl), reduce_max, reduce_add2 (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, k: u32, normalize: u32, has_scale: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> scale: array<f32>;
@group(0) @binding(3) var<storage, read> experts: array<u32>;
@group(0) @binding(4) var<storage, read> dweights: array<f32>;
@group(0) @binding(5) var<storage, read_write> dlogits: array<f32>;

const WG = 128u;
const LOWEST = -3.4028234e38;

// The index of an expert among the choices of a row; k if it was not chosen.
fn place(row: u32, expert: u32) -> u32 {
    var j = 0u;
    while (j < params.k && experts[row * params.k + j] != expert) { //~ alike: comparison
        j++;
    }
    return j;
}

// The derivative by the share of the row's j-th chosen expert.
fn wanted(row: u32, j: u32) -> f32 {
    let at = row * params.k + j;
    let v = dweights[at];
    return select(v, v * scale[experts[at]], params.has_scale == 1u);
}

@compute @workgroup_size(WG)
fn route_backward(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    var most = LOWEST;
    for (var e = lid; e < params.dim; e += WG) { //~ cancels: comparison
        most = max(most, logits[base + e]); //~ cancels: sign
    }
    let largest = reduce_max(most, lid);
    // The sums of the powers of chosen experts and of all others.
    var powers = vec2<f32>(0.0);
    for (var e = lid; e < params.dim; e += WG) {
        let power = exp(logits[base + e] - largest);
        powers += select(vec2<f32>(0.0, power), vec2<f32>(power, 0.0), place(row, e) < params.k);
    }
    let sums = reduce_add2(powers, lid);
    let others = select(sums.y, 0.0, params.normalize == 1u);
    let all = sums.x + others;
    for (var e = lid; e < params.dim; e += WG) {
        let own = place(row, e);
        let chosen = own < params.k;
        let q = select(0.0, wanted(row, min(own, params.k - 1u)), chosen);
        var sum = others * q;
        for (var j = 0u; j < params.k; j++) {
            let power = exp(logits[base + experts[row * params.k + j]] - largest);
            sum += power * (q - wanted(row, j));
        }
        let share = exp(logits[base + e] - largest) / all;
        dlogits[base + e] = select(0.0, share * (sum / all), chosen || params.normalize == 0u);
    }
}
