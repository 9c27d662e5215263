// What the parts of a split attention weigh in their join, of MOST_SPLITS at most; every thread of a workgroup of WG calls.
// (maximum, sum of weights) of every part, and its factor.
var<workgroup> found: array<vec2<f32>, MOST_SPLITS>;
var<workgroup> factors: array<f32, MOST_SPLITS>;

// Lets `factors` hold those of all parts and gives their sum of weights, from (maximum, sum) of part lid % 32 and of the one 32 further: (LOWEST, 0)
// where there is none.
fn weigh_parts(near: vec2<f32>, far: vec2<f32>, lid: u32) -> f32 {
    if (lid < 32u) {
        found[lid] = near;
        found[lid + 32u] = far;
    }
    workgroupBarrier();
    var most = LOWEST;
    for (var s = 0u; s < MOST_SPLITS; s++) {
        most = max(most, found[s].x);
    }
    if (lid < MOST_SPLITS) {
        factors[lid] = exp(found[lid].x - most);
    }
    workgroupBarrier();
    var total = 0.0;
    for (var s = 0u; s < MOST_SPLITS; s++) {
        total += factors[s] * found[s].y;
    }
    return total;
}
