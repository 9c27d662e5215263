// Sums over groups of `lanes` neighbouring threads (a power of two), in workgroup memory. Every
// thread of a workgroup of WG calls.
// Needs: WG. Gives: lanes_scratch, lanes_add4, neighbourhood, groups_add4, groups_max4.
var<workgroup> lanes_scratch: array<vec4<f32>, WG>;

fn lanes_add4(v: vec4<f32>, lanes: u32, lid: u32) -> vec4<f32> {
    var sum = v;
    for (var apart = lanes / 2u; apart > 0u; apart = apart / 2u) {
        workgroupBarrier();
        lanes_scratch[lid] = sum;
        workgroupBarrier();
        sum += lanes_scratch[lid ^ apart];
    }
    return sum;
}

// Without subgroups a neighbourhood is one group. lanes_subgroup.wgsl has the other form.
fn neighbourhood(lanes: u32) -> u32 {
    return lanes;
}

fn groups_add4(v: vec4<f32>, lanes: u32) -> vec4<f32> {
    return v;
}

fn groups_max4(v: vec4<f32>, lanes: u32) -> vec4<f32> {
    return v;
}
