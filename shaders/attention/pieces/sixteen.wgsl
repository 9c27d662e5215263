// Sixteen numbers among `lanes` neighbouring threads (a power of two, at least 16): one for each of
// four heads and four keys. A thread has the number of its slot, 4 key + head. Every thread of a
// workgroup of WG calls.
// Needs: WG, lanes_add4. Gives: sixteen, sixteen_slot, sixteen_add, sixteen_max, sixteen_any.
var<workgroup> sixteen: array<f32, WG>;

fn sixteen_slot(lanes: u32, lid: u32) -> u32 {
    return lid % lanes / (lanes / 16u);
}

// This thread's number, summed over the lanes. a, b, c, d: a thread's shares of the numbers of the
// four keys, one component per head.
fn sixteen_add(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, lanes: u32, lid: u32) -> f32 {
    let slot = sixteen_slot(lanes, lid);
    let near = select(lanes_add4(a, lanes, lid), lanes_add4(b, lanes, lid), (slot & 4u) != 0u);
    let far = select(lanes_add4(c, lanes, lid), lanes_add4(d, lanes, lid), (slot & 4u) != 0u);
    return select(near, far, (slot & 8u) != 0u)[slot & 3u];
}

// The largest number of this thread's head over the four keys.
fn sixteen_max(v: f32, lanes: u32, lid: u32) -> f32 {
    workgroupBarrier();
    sixteen[lid] = v;
    workgroupBarrier();
    let apart = lanes / 16u;
    let first = lid - lid % lanes + (sixteen_slot(lanes, lid) & 3u) * apart;
    return max(max(sixteen[first], sixteen[first + 4u * apart]), max(sixteen[first + 8u * apart], sixteen[first + 12u * apart]));
}

// Whether the condition holds for any thread. Without subgroups this is unknown, so all threads act
// as if it holds.
fn sixteen_any(v: bool) -> bool {
    return true;
}
