// Sum (of scalars or vectors), maximum, or both, over a workgroup of WG threads (a power of two),
// in workgroup memory. Every thread calls and gets the result. On return the scratch is free again.
// `lid` is the thread's number.
// Needs: WG. Gives: reduce_add, reduce_max, reduce_add4, reduce_add2, reduce_add_max.
var<workgroup> reduce_scratch: array<f32, WG>;
var<workgroup> reduce_scratch4: array<vec4<f32>, WG>;

fn reduce_add(v: f32, lid: u32) -> f32 {
    reduce_scratch[lid] = v;
    workgroupBarrier();
    for (var half = WG / 2u; half > 0u; half = half / 2u) {
        if (lid < half) { //~ order: comparison, guard dropped
            reduce_scratch[lid] += reduce_scratch[lid + half];
        }
        workgroupBarrier();
    }
    let sum = reduce_scratch[0];
    workgroupBarrier();
    return sum;
}

fn reduce_max(v: f32, lid: u32) -> f32 {
    reduce_scratch[lid] = v;
    workgroupBarrier();
    for (var half = WG / 2u; half > 0u; half = half / 2u) {
        if (lid < half) { //~ order: comparison, guard dropped
            reduce_scratch[lid] = max(reduce_scratch[lid], reduce_scratch[lid + half]);
        }
        workgroupBarrier();
    }
    let most = reduce_scratch[0];
    workgroupBarrier();
    return most;
}

fn reduce_add4(v: vec4<f32>, lid: u32) -> vec4<f32> {
    reduce_scratch4[lid] = v;
    workgroupBarrier();
    for (var half = WG / 2u; half > 0u; half = half / 2u) {
        if (lid < half) { //~ order: comparison, guard dropped
            reduce_scratch4[lid] += reduce_scratch4[lid + half];
        }
        workgroupBarrier();
    }
    let sum = reduce_scratch4[0];
    workgroupBarrier();
    return sum;
}

fn reduce_add2(v: vec2<f32>, lid: u32) -> vec2<f32> {
    return reduce_add4(vec4<f32>(v, 0.0, 0.0), lid).xy;
}

// The sum of v.x and the maximum of v.y.
fn reduce_add_max(v: vec2<f32>, lid: u32) -> vec2<f32> {
    return vec2<f32>(reduce_add(v.x, lid), reduce_max(v.y, lid));
}
