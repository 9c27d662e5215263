// The rows of activations of matmul_rows8.wgsl: consecutive rows of the step.
// Needs: params.many. Gives: acts_place, acts_absent.

// Offsets of row t in x: its quants begin at .x, the scales and sums of its blocks at .y.
fn acts_place(t: u32, k: u32) -> vec2<u32> {
    let start = t * ((3u * k) >> 5u);
    return vec2<u32>(start, start + (k >> 4u));
}

// Whether products with absent rows of activations are left out. In a plan of many rows only the
// last workgroups have absent rows, and a branch in all workgroups takes longer.
fn acts_absent() -> bool {
    return params.many == 0u; //~ surplus: off by one
}
