// The rows of activations of matmul_rows8_experts.wgsl: the rows that consecutive slots of an
// expert read.
// Needs: slots, params.per, params.heads. Gives: acts_place, acts_absent.

// Where the quants of the row of the slot in place t begin, and where the scales and sums of its
// blocks begin. `heads` rows of x are one packed row.
fn acts_place(t: u32, k: u32) -> vec2<u32> {
    let row = slots[t] / params.per;
    let start = row / params.heads * ((3u * params.heads * k) >> 5u);
    let head = row % params.heads;
    return vec2<u32>(start + head * (k >> 4u), start + params.heads * (k >> 4u) + head * (k >> 5u));
}

// Whether products with absent rows of activations are left out: a tile has few slots.
fn acts_absent() -> bool {
    return true;
}
