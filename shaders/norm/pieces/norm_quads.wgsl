// Rows of rms_norm.wgsl whose length is a multiple of 4. Elements past the end of a row are zero,
// and are not written.
// Needs: params.dim, params.has_weight. Gives: x, w, y, x_own, weight, y_store.
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;

fn x_own(row: u32, quad: u32) -> vec4<f32> {
    let quads = params.dim >> 2u;
    return select(vec4<f32>(0.0), x[row * quads + min(quad, quads - 1u)], quad < quads); //~ dropped: sign
}

fn weight(quad: u32) -> vec4<f32> {
    if (params.has_weight == 0u) {
        return vec4<f32>(1.0);
    }
    return w[min(quad, (params.dim >> 2u) - 1u)]; //~ dropped: sign
}

fn y_store(row: u32, quad: u32, v: vec4<f32>) {
    let quads = params.dim >> 2u;
    if (quad < quads) {
        y[row * quads + quad] = v;
    }
}
