// Bias and results of matmul_tile128.wgsl, one element at a time.
// Needs: params.rows, params.row_count, params.row_base, ys, scales, params.n, params.has_bias.
// Gives: y, finish.
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

// Writes the 16 x 16 results that a subgroup left at ys[base..].
fn finish(t0: u32, r0: u32, base: u32, lane: u32) {
    subgroupBarrier();
    for (var i = lane; i < 256u; i += 32u) {
        let t = t0 + (i >> 4u);
        let r = r0 + (i & 15u);
        if (t < params.rows && r < params.row_count) {
            let at = params.row_base + r;
            let v = ys[base + i] * scales[t];
            y[t * params.n + at] = select(v, v + bias[at], params.has_bias == 1u);
        }
    }
    subgroupBarrier();
}
