// Results of matmul_tile64_experts.wgsl, one at a time.
// Needs: Own, params.row_count, params.n, slots, ys, scales. Gives: y, store.
@group(0) @binding(6) var<storage, read_write> y: array<f32>;

// Writes the 16 x 16 results that the subgroup left at ys[own.base..].
fn store(own: Own, t0: u32, r0: u32) {
    for (var i = own.lane; i < 256u; i += 32u) { //~ later: comparison
        let t = t0 + (i >> 4u);
        let r = r0 + (i & 15u);
        let here = own.local + r < params.row_count; //~ later: comparison
        if (t < own.count && here && own.top + r < params.n) {
            y[slots[own.place + t] * params.n + own.top + r] = ys[own.base + i] * scales[own.place + t];
        }
    }
}
