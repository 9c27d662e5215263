// The row that a product reads, made by each of its workgroups: h = s (a + b / sqrt(mean b^2 + eps)
// * w), packed as h in 8 bits (pack = 1), or as h u with the shares of its norm (pack = 2;
// norm_pack_q8.wgsl). Workgroup 0 writes h for later kernels.
// acts_norm_add_eights.wgsl and acts_norm_add_quads.wgsl decide how many elements a thread has.
// a, b, h f32 [k], w, u f32 [k] (not read when has_weight = 0, has_u = 0), s one f32 (1 when
// has_factor = 0), k a multiple of 32, at most 2560.
// Needs: WG, lanes_add, acts_factor. Gives: a, b, w, s, u, h, norm_leave, norm_factor.
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> s: array<f32>;
@group(0) @binding(5) var<storage, read> u: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> h: array<vec4<f32>>;

// Sums of every 32 threads.
var<workgroup> norm_shares: array<f32, WG / 32u>;

fn norm_leave(share: f32, lid: u32) {
    let part = lanes_add(share, 32u, lid); //~ rounded: off by one
    if (lid % 32u == 0u) {
        norm_shares[lid / 32u] = part;
    }
}

// The factor of the norm of b, from the shares of the first `threads` threads.
fn norm_factor(threads: u32) -> f32 {
    var sum = 0.0;
    for (var g = 0u; g < (min(threads, WG) + 31u) / 32u; g++) {
        sum += norm_shares[g];
    }
    return acts_factor(sum);
}
