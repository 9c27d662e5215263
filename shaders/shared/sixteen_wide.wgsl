// What sixteen.wgsl does, by exchange between threads: a group of lanes shares a subgroup.
fn sixteen_slot(lanes: u32, lid: u32) -> u32 {
    return lid % lanes / (lanes / 16u);
}

fn sixteen_here(lid: u32) -> u32 {
    return subgroupExclusiveAdd(1u);
}

// Half of what a thread has goes to the other half of its threads at every step.
fn sixteen_add(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, lanes: u32, lid: u32) -> f32 {
    let slot = sixteen_slot(lanes, lid);
    let far = (slot & 8u) != 0u;
    let e = select(a, c, far) + subgroupShuffleXor(select(c, a, far), lanes / 2u);
    let f = select(b, d, far) + subgroupShuffleXor(select(d, b, far), lanes / 2u);
    let odd = (slot & 4u) != 0u;
    let g = select(e, f, odd) + subgroupShuffleXor(select(f, e, odd), lanes / 4u);
    let high = (slot & 2u) != 0u;
    let h = select(g.xy, g.zw, high) + subgroupShuffleXor(select(g.zw, g.xy, high), lanes / 8u);
    let last = (slot & 1u) != 0u;
    var sum = select(h.x, h.y, last) + subgroupShuffleXor(select(h.y, h.x, last), lanes / 16u);
    if (lanes > 16u) {
        sum += subgroupShuffleXor(sum, 1u);
    }
    return sum;
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

fn sixteen_max(v: f32, lanes: u32, lid: u32) -> f32 {
    let most = max(v, subgroupShuffleXor(v, lanes / 2u));
    return max(most, subgroupShuffleXor(most, lanes / 4u));
}

fn sixteen_total(v: f32, lanes: u32, lid: u32) -> f32 {
    let sum = v + subgroupShuffleXor(v, lanes / 2u);
    return sum + subgroupShuffleXor(sum, lanes / 4u);
}

fn sixteen_any(v: bool) -> bool {
    return subgroupAny(v);
}
