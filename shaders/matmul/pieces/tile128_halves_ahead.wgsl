// Eight columns of a row of the weight of a workgroup with tile128_halves.wgsl.
// Needs: w, w_row, slot_row. Gives: stored_eight.
fn stored_eight(first: u32, row: u32, k: u32, eight: u32) -> vec4<u32> {
    return w[(w_row(slot_row(first, row), k) >> 2u) + min(eight, (k >> 3u) - 1u)];
}
