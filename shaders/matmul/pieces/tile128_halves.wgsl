// Weights of 16 bits that 128 threads stage for tile128_loop.wgsl: eight columns of four rows per
// thread, so that eight neighbouring threads read 64 neighbouring columns. They are converted when
// they are staged. A conversion as they are loaded would wait for them.
// Needs: stored_eight, w_eight_of, ws, params.k, PITCH. Gives: Ahead, begin, ahead_load,
// ahead_store.
struct Ahead { a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32> }

fn begin(lid: u32) {
}

// The first row of the thread whose number among 128 or 256 is `slot`.
fn first_row(slot: u32) -> u32 {
    return ((slot & 127u) >> 3u) + 64u * (slot >> 7u);
}

// Columns k0.. of the rows from `first` on.
fn ahead_load(first: u32, k: u32, k0: u32, slot: u32) -> Ahead {
    let row = first_row(slot);
    let eight = (k0 >> 3u) + (slot & 7u);
    return Ahead(
        stored_eight(first, row, k, eight), stored_eight(first, row + 16u, k, eight),
        stored_eight(first, row + 32u, k, eight), stored_eight(first, row + 48u, k, eight));
}

// Columns past the end of the row are staged as zeros.
fn eight_store(eight: vec4<u32>, at: u32, live: bool) {
    let v = w_eight_of(select(vec4<u32>(), eight, vec4<bool>(live)));
    ws[at] = mat2x4<f16>(vec4<f16>(v[0]), vec4<f16>(v[1]));
}

fn ahead_store(v: Ahead, k0: u32, slot: u32) {
    let live = k0 + 8u * (slot & 7u) < params.k; //~ rounded: off by one
    let at = first_row(slot) * PITCH + (slot & 7u);
    eight_store(v.a, at, live);
    eight_store(v.b, at + 16u * PITCH, live);
    eight_store(v.c, at + 32u * PITCH, live);
    eight_store(v.d, at + 48u * PITCH, live);
}
