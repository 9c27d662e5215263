// Sums over groups of `lanes` neighbouring threads (a power of two), and over the groups of a
// neighbourhood. Threads less than params.exchange apart share a subgroup and use shuffles; others
// use workgroup memory. Every thread of a workgroup of WG calls.
// Needs: WG, params.exchange. Gives: lanes_scratch, lanes_add4, neighbourhood, groups_add4,
// groups_max4.
var<workgroup> lanes_scratch: array<vec4<f32>, WG>;

fn lanes_add4(v: vec4<f32>, lanes: u32, lid: u32) -> vec4<f32> {
    var sum = v;
    for (var apart = lanes / 2u; apart > 0u; apart = apart / 2u) {
        if (apart < params.exchange) {
            sum += subgroupShuffleXor(sum, apart);
        } else {
            workgroupBarrier();
            lanes_scratch[lid] = sum;
            workgroupBarrier();
            sum += lanes_scratch[lid ^ apart];
        }
    }
    return sum;
}

// The size of a neighbourhood: the neighbouring threads whose groups of `lanes` the functions below
// combine; at least one group.
fn neighbourhood(lanes: u32) -> u32 {
    return max(lanes, params.exchange);
}

fn groups_add4(v: vec4<f32>, lanes: u32) -> vec4<f32> {
    var sum = v;
    for (var apart = lanes; apart < params.exchange; apart *= 2u) { //~ twice: comparison; alike: off by one
        sum += subgroupShuffleXor(sum, apart);
    }
    return sum;
}

fn groups_max4(v: vec4<f32>, lanes: u32) -> vec4<f32> {
    var most = v;
    for (var apart = lanes; apart < params.exchange; apart *= 2u) { //~ twice: comparison; alike: off by one
        most = max(most, subgroupShuffleXor(most, apart));
    }
    return most;
}
