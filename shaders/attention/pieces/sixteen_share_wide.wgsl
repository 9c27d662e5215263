// sixteen_share.wgsl through subgroup shuffles.
// Needs: HEADS. Gives: sixteen_here, sixteen_share, sixteen_of, sixteen_total.

fn sixteen_here(lid: u32) -> u32 {
    return subgroupExclusiveAdd(1u);
}

fn sixteen_share(v: f32, lid: u32) {
}

fn sixteen_of(v: f32, key: u32, here: u32, lanes: u32, lid: u32) -> vec4<f32> {
    let apart = lanes / 16u;
    let first = here - lid % lanes + 4u * key * apart;
    var numbers = vec4<f32>(subgroupShuffle(v, first));
    if (HEADS > 1u) {
        numbers.y = subgroupShuffle(v, first + apart);
    }
    if (HEADS > 2u) {
        numbers.z = subgroupShuffle(v, first + 2u * apart);
        numbers.w = subgroupShuffle(v, first + 3u * apart);
    }
    return numbers;
}

fn sixteen_total(v: f32, lanes: u32, lid: u32) -> f32 {
    let sum = v + subgroupShuffleXor(v, lanes / 2u);
    return sum + subgroupShuffleXor(sum, lanes / 4u);
}
