// Loads ahead for a workgroup with tile128_groups.wgsl: 32 columns of one row per thread, which are
// a slot of the tile.
// Needs: Ahead, w_raw, w_row, slot_row, slot_column. Gives: ahead_load.
fn ahead_load(first: u32, k: u32, k0: u32, lid: u32) -> Ahead {
    return w_raw(w_row(slot_row(first, lid), k), k, slot_column(k0, lid) >> 4u);
}
