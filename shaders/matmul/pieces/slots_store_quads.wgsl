// Results of matmul_tile64_experts.wgsl, four at a time: n, stride, first, row_base and row_count
// are multiples of 4.
// Needs: Own, params.row_count, params.n, ys, slots, scales. Gives: y, store.
@group(0) @binding(6) var<storage, read_write> y: array<vec4<f32>>;

// Writes the 16 x 16 results that the subgroup left at ys[own.base..].
fn store(own: Own, t0: u32, r0: u32) {
    for (var i = own.lane; i < 64u; i += 32u) { //~ later: comparison
        let t = t0 + (i >> 2u);
        let r = r0 + ((i & 3u) << 2u);
        let here = own.local + r < params.row_count; //~ later: comparison
        if (t < own.count && here && own.top + r < params.n) {
            let first = own.base + 4u * i;
            let v = vec4<f32>(ys[first], ys[first + 1u], ys[first + 2u], ys[first + 3u]);
            y[(slots[own.place + t] * params.n + own.top + r) >> 2u] = v * scales[own.place + t];
        }
    }
}
