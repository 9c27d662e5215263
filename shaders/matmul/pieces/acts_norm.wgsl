// The row that products read, made by each of their workgroups: h u in 8 bits, with the shares of
// its norm if has_norm = 1 (both as in norm_pack_q8.wgsl).
// h f32 [k], u f32 [k] (not read when has_weight = 0), k a multiple of 32, at most 2560.
// Needs: params.k, WG, params.has_weight, params.has_norm, norm_share, params.eps, acts_quad.
// Gives: h, u, acts_make.
@group(0) @binding(1) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> u: array<vec4<f32>>;

// Every thread of a workgroup of WG calls.
fn acts_make(lid: u32) {
    let quads = params.k >> 2u;
    for (var start = 0u; start < quads; start += WG) {
        let quad = start + lid;
        let at = min(quad, quads - 1u);
        let v = h[at];
        var weight = vec4<f32>(1.0);
        if (params.has_weight == 1u) {
            weight = u[at];
        }
        var share = 0.0;
        if (params.has_norm == 1u) {
            share = norm_share(v, params.k, params.eps);
        }
        acts_quad(params.k, quad, quad < quads, v * weight, share, lid);
    }
    workgroupBarrier();
}
