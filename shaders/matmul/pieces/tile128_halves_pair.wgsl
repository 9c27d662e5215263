// Eight columns of a row of either weight of a workgroup with tile128_halves.wgsl and
// tile128_pair.wgsl.
// Needs: tiled_rows, other, w_row, slot_row, w. Gives: stored_eight.
fn stored_eight(first: u32, row: u32, k: u32, eight: u32) -> vec4<u32> {
    let column = min(eight, (k >> 3u) - 1u);
    if (first >= tiled_rows()) {
        return other[(w_row(slot_row(first - tiled_rows(), row), k) >> 2u) + column];
    }
    return w[(w_row(slot_row(first, row), k) >> 2u) + column];
}
