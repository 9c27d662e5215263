// Sixteen numbers among `lanes` neighbouring threads (a power of two, 16 or more): of four heads for each of four keys. A thread has the one
// of its slot, 4 key + head. Every thread of a workgroup of WG calls.
// Needs: WG, lanes_add4. Gives: sixteen, sixteen_slot, sixteen_add, sixteen_max, sixteen_any.
var<workgroup> sixteen: array<f32, WG>;

fn sixteen_slot(lanes: u32, lid: u32) -> u32 {
    return lid % lanes / (lanes / 16u);
}

// The sum over the lanes of this thread's number, from every thread's shares of the four keys' numbers.
fn sixteen_add(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, lanes: u32, lid: u32) -> f32 {
    let slot = sixteen_slot(lanes, lid);
    let near = select(lanes_add4(a, lanes, lid), lanes_add4(b, lanes, lid), (slot & 4u) != 0u);
    let far = select(lanes_add4(c, lanes, lid), lanes_add4(d, lanes, lid), (slot & 4u) != 0u);
    return select(near, far, (slot & 8u) != 0u)[slot & 3u];
}

// The largest of the four keys' numbers of this thread's head.
fn sixteen_max(v: f32, lanes: u32, lid: u32) -> f32 {
    workgroupBarrier(); //~ unseen: barrier dropped
    sixteen[lid] = v;
    workgroupBarrier(); //~ unseen: barrier dropped
    let apart = lanes / 16u;
    let first = lid - lid % lanes + (sixteen_slot(lanes, lid) & 3u) * apart;
    return max(max(sixteen[first], sixteen[first + 4u * apart]), max(sixteen[first + 8u * apart], sixteen[first + 12u * apart]));
}

// Whether it is so for any thread, or may be: then all raise.
fn sixteen_any(v: bool) -> bool {
    return true;
}
