// The rows of activations of matmul_rows8.wgsl: consecutive rows of the step.
// Needs: nothing. Gives: acts_place.

// Where the quants of row t begin, and where the scales and sums of its blocks begin.
fn acts_place(t: u32, k: u32) -> vec2<u32> {
    let start = t * ((3u * k) >> 5u);
    return vec2<u32>(start, start + (k >> 4u));
}
