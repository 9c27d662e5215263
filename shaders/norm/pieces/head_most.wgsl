// The largest magnitude in the block of 32 elements around a thread's quad of `head`
// (heads_quads.wgsl). Every thread calls.
// Needs: head. Gives: head_most.
fn head_most(v: vec4<f32>, lid: u32) -> f32 {
    workgroupBarrier();
    head[lid] = abs(v);
    workgroupBarrier();
    var most = vec4<f32>(0.0);
    for (var i = 0u; i < 8u; i++) {
        most = max(most, head[(lid & ~7u) + i]);
    }
    return max(max(most.x, most.y), max(most.z, most.w));
}
