// What part_weights.wgsl does where 32 neighbouring threads share a subgroup: each 32 look at all parts.
var<workgroup> factors: array<f32, MOST_SPLITS>;

fn weigh_parts(near: vec2<f32>, far: vec2<f32>, lid: u32) -> f32 {
    var most = max(near.x, far.x);
    for (var apart = 16u; apart > 0u; apart = apart / 2u) {
        most = max(most, subgroupShuffleXor(most, apart));
    }
    let factor = exp(vec2<f32>(near.x, far.x) - most);
    if (lid < 32u) {
        factors[lid] = factor.x;
        factors[lid + 32u] = factor.y;
    }
    var total = factor.x * near.y + factor.y * far.y;
    for (var apart = 16u; apart > 0u; apart = apart / 2u) {
        total += subgroupShuffleXor(total, apart);
    }
    workgroupBarrier();
    return total;
}
