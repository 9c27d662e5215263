// Rows of add_rms_norm.wgsl whose length is a multiple of 4. Elements past the end of a row are
// zero, and are not written.
// Needs: params.dim, params.has_weight. Gives: a, b, w, h, x, sum_own, weight, h_store, x_store.
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> x: array<vec4<f32>>;

fn sum_own(row: u32, quad: u32) -> vec4<f32> {
    let quads = params.dim >> 2u;
    let at = row * quads + min(quad, quads - 1u); //~ dropped: sign
    return select(vec4<f32>(0.0), a[at] + b[at], quad < quads);
}

fn weight(quad: u32) -> vec4<f32> {
    if (params.has_weight == 0u) {
        return vec4<f32>(1.0);
    }
    return w[min(quad, (params.dim >> 2u) - 1u)]; //~ dropped: sign
}

fn h_store(row: u32, quad: u32, v: vec4<f32>) {
    let quads = params.dim >> 2u;
    if (quad < quads) {
        h[row * quads + quad] = v;
    }
}

fn x_store(row: u32, quad: u32, v: vec4<f32>) {
    let quads = params.dim >> 2u;
    if (quad < quads) {
        x[row * quads + quad] = v;
    }
}
