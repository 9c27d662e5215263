// Sums over `lanes` neighbouring threads (a power of two, at most 32), through lanes.wgsl. Every
// thread of a workgroup calls.
// Needs: lanes_add4, lanes_scratch. Gives: lanes_add, lanes_add2, lanes_each4, lanes_busy,
// lanes_other, lanes_other2, lanes_other4, lanes_sum4.
fn lanes_add(v: f32, lanes: u32, lid: u32) -> f32 {
    return lanes_add4(vec4<f32>(v, 0.0, 0.0, 0.0), lanes, lid).x;
}

fn lanes_add2(v: vec2<f32>, lanes: u32, lid: u32) -> vec2<f32> {
    return lanes_add4(vec4<f32>(v, 0.0, 0.0), lanes, lid).xy;
}

// The sum of one component: of x in the first quarter of the threads, of y in the next, and so on.
fn lanes_each4(v: vec4<f32>, lanes: u32, lid: u32) -> f32 {
    return lanes_add4(v, lanes, lid)[(lid / (lanes / 4u)) & 3u];
}

// Whether this group of 32 threads takes part in an exchange. All 32 pass the same `v`. Without
// subgroups the exchange has workgroup barriers, so every thread must take part.
fn lanes_busy(v: bool) -> bool {
    return true;
}

// The value of the thread `apart` (a power of two below 32) from this one.
fn lanes_other(v: f32, apart: u32, lid: u32) -> f32 {
    workgroupBarrier();
    lanes_scratch[lid].x = v;
    workgroupBarrier();
    return lanes_scratch[lid ^ apart].x;
}

fn lanes_other2(v: vec2<f32>, apart: u32, lid: u32) -> vec2<f32> {
    return lanes_other4(v.xyxy, apart, lid).xy;
}

fn lanes_other4(v: vec4<f32>, apart: u32, lid: u32) -> vec4<f32> {
    workgroupBarrier();
    lanes_scratch[lid] = v;
    workgroupBarrier();
    return lanes_scratch[lid ^ apart];
}

fn lanes_sum4(v: vec4<f32>, lanes: u32, lid: u32) -> vec4<f32> {
    return lanes_add4(v, lanes, lid);
}
