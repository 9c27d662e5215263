// The rows from `first` on that a workgroup of matmul_coop.wgsl reads ahead for coop_groups.wgsl: 32 columns of one per thread.
fn ahead_load(first: u32, k: u32, k0: u32, lid: u32) -> Ahead {
    return w_raw(w_row(min(first + lid, params.row_count - 1u), k), k, k0 >> 4u);
}
