// Sixteen numbers among `lanes` neighbouring threads (a power of two, 16 or more): of four heads for each of four keys. A thread has the one
// of its slot, 4 key + head. Every thread of a workgroup of WG calls.
var<workgroup> sixteen: array<f32, WG>;

fn sixteen_slot(lanes: u32, lid: u32) -> u32 {
    return lid % lanes / (lanes / 16u);
}

// Where the exchange between threads has this one.
fn sixteen_here(lid: u32) -> u32 {
    return lid;
}

// The sum over the lanes of this thread's number, from every thread's shares of the four keys' numbers.
fn sixteen_add(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, lanes: u32, lid: u32) -> f32 {
    let slot = sixteen_slot(lanes, lid);
    let near = select(lanes_add4(a, lanes, lid), lanes_add4(b, lanes, lid), (slot & 4u) != 0u);
    let far = select(lanes_add4(c, lanes, lid), lanes_add4(d, lanes, lid), (slot & 4u) != 0u);
    return select(near, far, (slot & 8u) != 0u)[slot & 3u];
}

// Lets sixteen_of and those below find what the threads have.
fn sixteen_share(v: f32, lid: u32) {
    workgroupBarrier();
    sixteen[lid] = v;
    workgroupBarrier();
}

// What the threads of a group share: numbers of HEADS heads for one key.
fn sixteen_of(v: f32, key: u32, here: u32, lanes: u32, lid: u32) -> vec4<f32> {
    let apart = lanes / 16u;
    let first = lid - lid % lanes + 4u * key * apart;
    return vec4<f32>(sixteen[first], sixteen[first + apart], sixteen[first + 2u * apart], sixteen[first + 3u * apart]);
}

// The largest, and the sum, of the four keys' numbers of this thread's head.
fn sixteen_max(v: f32, lanes: u32, lid: u32) -> f32 {
    sixteen_share(v, lid);
    let most = max(max(sixteen_of(v, 0u, lid, lanes, lid), sixteen_of(v, 1u, lid, lanes, lid)), max(sixteen_of(v, 2u, lid, lanes, lid), sixteen_of(v, 3u, lid, lanes, lid)));
    return most[sixteen_slot(lanes, lid) & 3u];
}

fn sixteen_total(v: f32, lanes: u32, lid: u32) -> f32 {
    sixteen_share(v, lid);
    let sum = sixteen_of(v, 0u, lid, lanes, lid) + sixteen_of(v, 1u, lid, lanes, lid) + (sixteen_of(v, 2u, lid, lanes, lid) + sixteen_of(v, 3u, lid, lanes, lid));
    return sum[sixteen_slot(lanes, lid) & 3u];
}

// Whether it is so for any thread, or may be: then all raise.
fn sixteen_any(v: bool) -> bool {
    return true;
}
