// Loads ahead for a workgroup with tile128_groups.wgsl: a slot of 32 columns.
// Needs: Ahead, w_raw, w_row, slot_row, slot_column. Gives: ahead_load.
fn ahead_load(first: u32, k: u32, k0: u32, slot: u32) -> Ahead {
    return w_raw(w_row(slot_row(first, slot), k), k, slot_column(k0, slot) >> 4u);
}
