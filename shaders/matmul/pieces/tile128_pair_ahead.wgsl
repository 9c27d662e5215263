// Loads ahead for a workgroup with tile128_groups.wgsl and tile128_pair.wgsl: a slot of 32 columns
// of either weight.
// Needs: Ahead, tiled_rows, other_raw, w_row, slot_row, slot_column, w_raw. Gives: ahead_load.
fn ahead_load(first: u32, k: u32, k0: u32, slot: u32) -> Ahead {
    if (first >= tiled_rows()) {
        return other_raw(w_row(slot_row(first - tiled_rows(), slot), k), k, slot_column(k0, slot) >> 4u);
    }
    return w_raw(w_row(slot_row(first, slot), k), k, slot_column(k0, slot) >> 4u);
}
