// Sums over groups of `lanes` neighbouring threads (a power of two): by exchange within the subgroup where params.exchange says that it
// holds a group, else in workgroup memory. Every thread of a workgroup of WG calls.
var<workgroup> lanes_scratch: array<vec4<f32>, WG>;

fn lanes_add4(v: vec4<f32>, lanes: u32, lid: u32) -> vec4<f32> {
    var sum = v;
    for (var apart = lanes / 2u; apart > 0u; apart = apart / 2u) {
        if (params.exchange == 1u) {
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
