// Bias and results of matmul_tile128.wgsl, four at a time: n, row_base and row_count are multiples
// of 4.
// Needs: params.rows, params.row_count, params.row_base, ys, scales, params.n, params.has_bias.
// Gives: y, finish.
@group(0) @binding(4) var<storage, read> bias: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;

// Writes the 16 x 16 results that a subgroup left at ys[base..].
fn finish(t0: u32, r0: u32, base: u32, lane: u32) {
    subgroupBarrier();
    for (var i = lane; i < 64u; i += 32u) {
        let t = t0 + (i >> 2u);
        let r = r0 + ((i & 3u) << 2u);
        if (t < params.rows && r < params.row_count) {
            let at = params.row_base + r;
            let first = base + 4u * i;
            let v = vec4<f32>(ys[first], ys[first + 1u], ys[first + 2u], ys[first + 3u]) * scales[t];
            y[(t * params.n + at) >> 2u] = select(v, v + bias[at >> 2u], params.has_bias == 1u);
        }
    }
    subgroupBarrier();
}
