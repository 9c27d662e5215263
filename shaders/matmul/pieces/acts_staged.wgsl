// The row x of acts_eights.wgsl in workgroup memory, STAGE columns at a time, so that a workgroup
// reads and norms it once.
// h f32 [1, k], u f32 [k] (not read when has_weight = 0), k a multiple of 8.
// Needs: params.k, WG, params.has_norm, norm_share, params.eps, params.has_weight,
// TWO_POW_MINUS_32, parts_share. Gives: h, u, STAGE, staged_make, staged_quad, acts_factor.
@group(0) @binding(1) var<storage, read> h: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> u: array<vec4<f32>>;

const STAGE = 2048u;
var<workgroup> staged: array<vec4<f32>, STAGE / 4u>;

// Neighbouring threads read the same quad of neighbouring blocks of 32 columns. These quads lie in
// different banks.
fn staged_place(quad: u32) -> u32 {
    return quad ^ ((quad >> 3u) & 7u); //~ apart: shift, mask
}

// Stages the columns from `first` on. Returns the thread's share of the norm. Every thread calls.
fn staged_make(first: u32, lid: u32) -> f32 {
    workgroupBarrier();
    var share = 0.0;
    for (var quad = lid; quad < (min(STAGE, params.k - first) >> 2u); quad += WG) {
        let at = (first >> 2u) + quad;
        var v = h[at];
        if (params.has_norm == 1u) { //~ unused: guard dropped
            share += norm_share(v, params.k, params.eps);
        }
        if (params.has_weight == 1u) {
            v *= u[at];
        }
        staged[staged_place(quad)] = v;
    }
    workgroupBarrier();
    return share;
}

fn staged_quad(quad: u32) -> vec4<f32> {
    return staged[staged_place(quad)];
}

// The factor of the norm, after parts_leave.
fn acts_factor() -> f32 {
    if (params.has_norm == 0u) {
        return 1.0;
    }
    return TWO_POW_MINUS_32 * inverseSqrt(parts_share());
}
