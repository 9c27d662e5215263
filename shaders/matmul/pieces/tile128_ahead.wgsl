// Loads ahead the rows from `first` on for a workgroup of matmul_tile128.wgsl with
// tile128_groups.wgsl: 32 columns of one row per thread.
// Needs: Ahead, w_raw, w_row, params.row_count. Gives: ahead_load.
fn ahead_load(first: u32, k: u32, k0: u32, lid: u32) -> Ahead {
    return w_raw(w_row(min(first + lid, params.row_count - 1u), k), k, k0 >> 4u); //~ unowned: sign
}
