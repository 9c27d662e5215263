// The row x that products read: x = h u, with the shares of its norm (norm_share.wgsl) if
// has_norm = 1. The factor of the norm is applied to the sums.
// h f32 [1, k], u f32 [k] (not read when has_weight = 0), k a multiple of 8.
// Needs: Acts, params.k, params.has_norm, norm_share, params.eps, params.has_weight,
// TWO_POW_MINUS_32, parts_share. Gives: h, u, acts8, acts_factor.
@group(0) @binding(1) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> u: array<vec4<f32>>;

fn acts8(t: u32, i: u32) -> Acts {
    let at = t * (params.k >> 2u) + 2u * i; //~ never: shift
    var v = mat2x4<f32>(h[at], h[at + 1u]);
    var share = 0.0;
    if (params.has_norm == 1u) { //~ unused: guard dropped
        share = norm_share(v[0], params.k, params.eps) + norm_share(v[1], params.k, params.eps);
    }
    if (params.has_weight == 1u) {
        v = mat2x4<f32>(v[0] * u[2u * i], v[1] * u[2u * i + 1u]);
    }
    return Acts(v, share);
}

// The factor of the norm, after parts_leave.
fn acts_factor() -> f32 {
    if (params.has_norm == 0u) {
        return 1.0;
    }
    return TWO_POW_MINUS_32 * inverseSqrt(parts_share());
}
