// Rows of rms_norm.wgsl of any length. Elements past the end of a row are zero, and are not
// written.
// Needs: params.dim, params.has_weight. Gives: x, w, y, x_own, weight, y_store.
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

fn x_own(row: u32, quad: u32) -> vec4<f32> {
    var v = vec4<f32>(0.0);
    for (var c = 0u; c < 4u && 4u * quad + c < params.dim; c++) {
        v[c] = x[row * params.dim + 4u * quad + c];
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

fn y_store(row: u32, quad: u32, v: vec4<f32>) {
    for (var c = 0u; c < 4u && 4u * quad + c < params.dim; c++) {
        y[row * params.dim + 4u * quad + c] = v[c];
    }
}
