// The rows of activations of matmul_rows8_experts.wgsl: the rows that consecutive slots of an
// expert read.
// Needs: slots, params.per, params.heads. Gives: acts_place, acts_absent.

// Offsets of the row of slots[t] in x: its quants begin at .x, the scales and sums of its blocks at
// .y. `heads` rows of x are one packed row.
fn acts_place(t: u32, k: u32) -> vec2<u32> {
    let row = slots[t] / params.per;
    let start = row / params.heads * ((3u * params.heads * k) >> 5u);
    let head = row % params.heads;
    return vec2<u32>(start + head * (k >> 4u), start + params.heads * (k >> 4u) + head * (k >> 5u));
}

// Whether products with absent rows of activations are left out. They are, because a tile has few
// slots.
fn acts_absent() -> bool {
    return true;
}
