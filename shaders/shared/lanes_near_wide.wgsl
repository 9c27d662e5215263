// The sums of lanes_near.wgsl for devices where 32 neighbouring threads share a subgroup.
// Needs: nothing. Gives: lanes_add, lanes_add2, lanes_each4, lanes_busy, lanes_other, lanes_other2,
// lanes_other4, lanes_sum4.
fn lanes_add(v: f32, lanes: u32, lid: u32) -> f32 {
    var sum = v;
    for (var apart = lanes / 2u; apart > 0u; apart = apart / 2u) {
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}

fn lanes_add2(v: vec2<f32>, lanes: u32, lid: u32) -> vec2<f32> {
    var sum = v;
    for (var apart = lanes / 2u; apart > 0u; apart = apart / 2u) {
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}

// The sum of one component: of x in the first quarter of the threads, of y in the next, and so on.
// Every exchange halves the values that remain. 32 lanes take 6 exchanges; four sums in every
// thread would take 20.
fn lanes_each4(v: vec4<f32>, lanes: u32, lid: u32) -> f32 {
    let quarter = lanes / 4u;
    let upper = (lid & (2u * quarter)) != 0u;
    let two = select(v.xy, v.zw, upper) + subgroupShuffleXor(select(v.zw, v.xy, upper), 2u * quarter); //~ free: off by one
    let odd = (lid & quarter) != 0u;
    var sum = select(two.x, two.y, odd) + subgroupShuffleXor(select(two.y, two.x, odd), quarter);
    for (var apart = quarter / 2u; apart > 0u; apart = apart / 2u) {
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}

fn lanes_busy(v: bool) -> bool {
    return v;
}

fn lanes_other(v: f32, apart: u32, lid: u32) -> f32 {
    return subgroupShuffleXor(v, apart);
}

fn lanes_other2(v: vec2<f32>, apart: u32, lid: u32) -> vec2<f32> {
    return subgroupShuffleXor(v, apart);
}

fn lanes_other4(v: vec4<f32>, apart: u32, lid: u32) -> vec4<f32> {
    return subgroupShuffleXor(v, apart);
}

fn lanes_sum4(v: vec4<f32>, lanes: u32, lid: u32) -> vec4<f32> {
    var sum = v;
    for (var apart = lanes / 2u; apart > 0u; apart = apart / 2u) {
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}
