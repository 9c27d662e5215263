// What the parts of a split attention weigh in their join, of MOST_SPLITS at most, and sums over threads that have the same quad; every thread of a
// workgroup of WG calls.
// Needs: MOST_SPLITS, LOWEST. Gives: found, weigh_parts, part_factor, part_factor_on, parts_beside, parts_add, parts_done.
struct PartWeights { near: f32, far: f32, total: f32 }

// (maximum, sum of weights) of every part, and its factor.
var<workgroup> found: array<vec2<f32>, MOST_SPLITS>;
var<workgroup> factors: array<f32, MOST_SPLITS>;

// From (maximum, sum) of part lid % 32 and of the one 32 further, (LOWEST, 0) where there is none: their factors, and the sum of all weights.
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
    for (var s = 0u; s < MOST_SPLITS; s++) { //~ clamped: comparison
        total += factors[s] * found[s].y;
    }
    return PartWeights(0.0, 0.0, total);
}

// The factor of a part below 32, and of one that is a power of two up to 32 further, and below that power itself.
fn part_factor(weights: PartWeights, s: u32) -> f32 {
    return factors[s];
}

fn part_factor_on(weights: PartWeights, s: u32, on: u32) -> f32 {
    return factors[s + on];
}

// Neighbouring threads whose groups of `chunk` have been added, one at least, by parts_add.
fn parts_beside(chunk: u32) -> u32 {
    return chunk;
}

fn parts_add(v: vec4<f32>, chunk: u32) -> vec4<f32> {
    return v;
}

// Whether a thread has no part in what follows.
fn parts_done(chunk: u32, lid: u32) -> bool {
    return false;
}
