// sixteen.wgsl through subgroup shuffles. A group of lanes shares a subgroup.
// Needs: nothing. Gives: sixteen_slot, sixteen_add, sixteen_max, sixteen_any.
fn sixteen_slot(lanes: u32, lid: u32) -> u32 {
    return lid % lanes / (lanes / 16u);
}

// At every step a thread keeps half of its numbers and sends the others to its partner.
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
    if (lanes > 16u) { //~ never: off by one
        sum += subgroupShuffleXor(sum, 1u);
    }
    return sum;
}

fn sixteen_max(v: f32, lanes: u32, lid: u32) -> f32 {
    let most = max(v, subgroupShuffleXor(v, lanes / 2u));
    return max(most, subgroupShuffleXor(most, lanes / 4u));
}

fn sixteen_any(v: bool) -> bool {
    return subgroupAny(v);
}
