// Two weights of the same rows for matmul_tile128.wgsl, without biases: n = row_count, a multiple
// of 4, and row_base = 0. Workgroups past the tiles of w have the tiles of `other`, whose rows
// start at the offsets of the rows of w, and write other_y [rows, n] f32.
// Needs: params.row_count, COLUMNS, params.rows, params.n, ys, scales. Gives: other, y, tiled_rows,
// finish.
@group(0) @binding(4) var<storage, read> other: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> other_y: array<vec4<f32>>;

// Rows in the tiles of w.
fn tiled_rows() -> u32 {
    return (params.row_count + COLUMNS - 1u) / COLUMNS * COLUMNS; //~ never: off by one
}

// Writes the 16 x 16 results that a subgroup left at ys[base..].
fn finish(t0: u32, r0: u32, base: u32, lane: u32) {
    let second = r0 >= tiled_rows();
    let first_row = r0 - select(0u, tiled_rows(), second);
    subgroupBarrier();
    for (var i = lane; i < 64u; i += 32u) {
        let t = t0 + (i >> 2u);
        let r = first_row + ((i & 3u) << 2u);
        if (t < params.rows && r < params.row_count) {
            let at = (t * params.n + r) >> 2u;
            let first = base + 4u * i;
            let v = vec4<f32>(ys[first], ys[first + 1u], ys[first + 2u], ys[first + 3u]) * scales[t];
            if (second) {
                other_y[at] = v;
            } else {
                y[at] = v;
            }
        }
    }
    subgroupBarrier();
}
