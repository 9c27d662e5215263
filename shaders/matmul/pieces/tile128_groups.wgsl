// The 32 columns of weights that a workgroup stages for cooperative matrices, in a format with
// units, a slot per thread. Scales of 32 columns are unpacked once. A byte in the significand of an
// f16 reads as 1024 + byte, so bytes need no conversion to floats.
// Needs: w_Raw, ws, w_groups, slot_column, PITCH. Gives: Ahead, ahead_store.
alias Ahead = w_Raw;

fn halves_of(bytes: u32, scale: f32, less: f32) -> vec4<f16> {
    let even = unpack2x16float((bytes & 0x00ff00ffu) | 0x64006400u);
    let odd = unpack2x16float(((bytes >> 8u) & 0x00ff00ffu) | 0x64006400u);
    return vec4<f16>(fma(vec4<f32>(even.x, odd.x, even.y, odd.y), vec4<f32>(scale), vec4<f32>(-less)));
}

fn group_store(at: u32, bytes: vec4<u32>, scale: f32, least: f32) {
    let less = 1024.0 * scale + least;
    ws[at] = halves_of(bytes.x, scale, less);
    ws[at + 1u] = halves_of(bytes.y, scale, less);
    ws[at + 2u] = halves_of(bytes.z, scale, less);
    ws[at + 3u] = halves_of(bytes.w, scale, less);
}

fn ahead_store(raw: Ahead, k0: u32, lid: u32) {
    let groups = w_groups(raw, slot_column(k0, lid) >> 4u);
    group_store(lid * PITCH, groups.first, groups.scale.x, groups.least.x);
    group_store(lid * PITCH + 4u, groups.second, groups.scale.y, groups.least.y);
}
