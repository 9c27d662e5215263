// part_weights.wgsl for devices where 32 neighbouring threads share a subgroup. Every 32 threads
// read all parts.
// Needs: nothing. Gives: weigh_parts, part_factor, part_factor_on, parts_beside, parts_add,
// parts_done.
struct PartWeights { near: f32, far: f32, total: f32 }

fn weigh_parts(near: vec2<f32>, far: vec2<f32>, lid: u32) -> PartWeights {
    var most = max(near.x, far.x);
    for (var apart = 16u; apart > 0u; apart = apart / 2u) { //~ alike: off by one
        most = max(most, subgroupShuffleXor(most, apart));
    }
    let factor = exp(vec2<f32>(near.x, far.x) - most);
    var total = factor.x * near.y + factor.y * far.y;
    for (var apart = 16u; apart > 0u; apart = apart / 2u) { //~ alike: off by one
        total += subgroupShuffleXor(total, apart);
    }
    return PartWeights(factor.x, factor.y, total);
}

fn part_factor(weights: PartWeights, s: u32) -> f32 {
    return subgroupShuffle(weights.near, s);
}

fn part_factor_on(weights: PartWeights, s: u32, on: u32) -> f32 {
    if (on < 32u) {
        return subgroupShuffle(weights.near, s + on);
    }
    return subgroupShuffle(weights.far, s);
}

fn parts_beside(chunk: u32) -> u32 {
    return max(chunk, 32u);
}

fn parts_add(v: vec4<f32>, chunk: u32) -> vec4<f32> {
    var sum = v;
    for (var apart = chunk; apart < 32u; apart *= 2u) { //~ alike: off by one
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}

// Only the first parts_beside(chunk) threads continue.
fn parts_done(chunk: u32, lid: u32) -> bool {
    return lid >= parts_beside(chunk); //~ surplus: comparison
}
