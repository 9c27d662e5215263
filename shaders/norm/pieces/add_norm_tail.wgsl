// Rows of add_rms_norm.wgsl of any length. Elements past the end of a row are zero, and are not
// written.
// Needs: params.dim, params.has_weight. Gives: a, b, w, h, x, sum_own, weight, h_store, x_store.
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<f32>;
@group(0) @binding(4) var<storage, read_write> h: array<f32>;
@group(0) @binding(5) var<storage, read_write> x: array<f32>;

fn sum_own(row: u32, quad: u32) -> vec4<f32> {
    var v = vec4<f32>(0.0);
    for (var c = 0u; c < 4u && 4u * quad + c < params.dim; c++) {
        let at = row * params.dim + 4u * quad + c;
        v[c] = a[at] + b[at];
    }
    return v;
}

fn weight(quad: u32) -> vec4<f32> {
    var v = vec4<f32>(1.0);
    for (var c = 0u; c < 4u && 4u * quad + c < params.dim && params.has_weight == 1u; c++) {
        v[c] = w[4u * quad + c];
    }
    return v;
}

fn h_store(row: u32, quad: u32, v: vec4<f32>) {
    for (var c = 0u; c < 4u && 4u * quad + c < params.dim; c++) {
        h[row * params.dim + 4u * quad + c] = v[c];
    }
}

fn x_store(row: u32, quad: u32, v: vec4<f32>) {
    for (var c = 0u; c < 4u && 4u * quad + c < params.dim; c++) {
        x[row * params.dim + 4u * quad + c] = v[c];
    }
}
