// Exchange of the sixteen numbers of sixteen.wgsl between threads.
// Needs: sixteen, sixteen_slot. Gives: sixteen_here, sixteen_share, sixteen_of, sixteen_total.

// This thread's index in the exchange.
fn sixteen_here(lid: u32) -> u32 {
    return lid;
}

// Publishes this thread's number for sixteen_of.
fn sixteen_share(v: f32, lid: u32) {
    workgroupBarrier();
    sixteen[lid] = v;
    workgroupBarrier();
}

// The numbers of HEADS heads for one key, as this group of lanes published them.
fn sixteen_of(v: f32, key: u32, here: u32, lanes: u32, lid: u32) -> vec4<f32> {
    let apart = lanes / 16u;
    let first = lid - lid % lanes + 4u * key * apart;
    return vec4<f32>(sixteen[first], sixteen[first + apart], sixteen[first + 2u * apart], sixteen[first + 3u * apart]);
}

fn sixteen_total(v: f32, lanes: u32, lid: u32) -> f32 {
    sixteen_share(v, lid);
    let sum = sixteen_of(v, 0u, lid, lanes, lid) + sixteen_of(v, 1u, lid, lanes, lid) + (sixteen_of(v, 2u, lid, lanes, lid) + sixteen_of(v, 3u, lid, lanes, lid));
    return sum[sixteen_slot(lanes, lid) & 3u];
}
