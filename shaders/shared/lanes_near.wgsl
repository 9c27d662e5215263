// Sums over `lanes` neighbouring threads, 32 at most (a power of two), through lanes.wgsl; every thread of a workgroup calls.
// Needs: lanes_add4, lanes_scratch. Gives: lanes_add, lanes_add2, lanes_each4, lanes_busy, lanes_other, lanes_other2, lanes_other4,
// lanes_sum4.
fn lanes_add(v: f32, lanes: u32, lid: u32) -> f32 {
    return lanes_add4(vec4<f32>(v, 0.0, 0.0, 0.0), lanes, lid).x;
}

fn lanes_add2(v: vec2<f32>, lanes: u32, lid: u32) -> vec2<f32> {
    return lanes_add4(vec4<f32>(v, 0.0, 0.0), lanes, lid).xy;
}

// The sum of one component: in the first quarter of the threads of x, in the next of y, and so on.
fn lanes_each4(v: vec4<f32>, lanes: u32, lid: u32) -> f32 {
    return lanes_add4(v, lanes, lid)[(lid / (lanes / 4u)) & 3u];
}

// Whether these 32 neighbouring threads, which all ask the same, take part in what is between others: every thread must.
fn lanes_busy(v: bool) -> bool {
    return true;
}

// What the thread `apart` (a power of two below 32) from this one has.
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
