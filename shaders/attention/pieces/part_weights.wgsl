// Weights of at most MOST_SPLITS parts of a split attention in their join, and sums over threads
// that have the same quad. Every thread of a workgroup of WG calls.
// Needs: MOST_SPLITS, LOWEST. Gives: found, weigh_parts, part_factor, part_factor_on, parts_beside,
// parts_add, parts_done.
struct PartWeights { near: f32, far: f32, total: f32 }

// (maximum, sum of weights) of every part, and its factor.
var<workgroup> found: array<vec2<f32>, MOST_SPLITS>;
var<workgroup> factors: array<f32, MOST_SPLITS>;

// Makes the factors of the parts and the sum of all weights. `near`: (maximum, sum) of part lid %
// 32. `far`: (maximum, sum) of the part 32 further. Both are (LOWEST, 0) where there is no part.
fn weigh_parts(near: vec2<f32>, far: vec2<f32>, lid: u32) -> PartWeights {
    if (lid < 32u) { //~ race: comparison
        found[lid] = near;
        found[lid + 32u] = far;
    }
    workgroupBarrier();
    var most = LOWEST;
    for (var s = 0u; s < MOST_SPLITS; s++) { //~ clamped: comparison
        most = max(most, found[s].x);
    }
    if (lid < MOST_SPLITS) { //~ clamped: comparison, guard dropped
        factors[lid] = exp(found[lid].x - most);
    }
    workgroupBarrier();
    var total = 0.0;
    for (var s = 0u; s < MOST_SPLITS; s++) {
        total += factors[s] * found[s].y;
    }
    return PartWeights(0.0, 0.0, total);
}

// The factor of part s, which is below 32. part_factor_on: the factor of part s + on, with `on` a
// power of two up to 32, and s below `on`.
fn part_factor(weights: PartWeights, s: u32) -> f32 {
    return factors[s];
}

fn part_factor_on(weights: PartWeights, s: u32, on: u32) -> f32 {
    return factors[s + on];
}

// How many neighbouring threads share the result of parts_add, which adds their groups of `chunk`;
// at least one group.
fn parts_beside(chunk: u32) -> u32 {
    return chunk;
}

fn parts_add(v: vec4<f32>, chunk: u32) -> vec4<f32> {
    return v;
}

// Whether a thread has no work after parts_add.
fn parts_done(chunk: u32, lid: u32) -> bool {
    return false;
}
