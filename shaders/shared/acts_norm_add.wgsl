// The row that a product reads, made by each of its workgroups: h = s (a + b / sqrt(mean b^2 + eps) * w), and 8 bits of h (pack = 1), or of h u
// with the shares of its norm (pack = 2; norm_pack_q8.wgsl). The workgroup 0 writes h for those who read it later.
// a, b, h f32 [k], w, u f32 [k] (not read when has_weight = 0, has_u = 0), s one f32 (1 when has_factor = 0), k a multiple of 32, of 2560 at most.
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> s: array<f32>;
@group(0) @binding(5) var<storage, read> u: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> h: array<vec4<f32>>;

const_assert 3u * 4u * WG >= MOST_COLS;

// Four elements of everything.
struct Beside { a: vec4<f32>, b: vec4<f32>, w: vec4<f32>, u: vec4<f32> }

fn beside(quad: u32, quads: u32) -> Beside {
    let at = min(quad, quads - 1u);
    var weight = vec4<f32>(1.0);
    if (params.has_weight == 1u) {
        weight = w[at];
    }
    var next = vec4<f32>(1.0);
    if (params.has_u == 1u) {
        next = u[at];
    }
    return Beside(a[at], select(vec4<f32>(0.0), b[at], quad < quads), weight, next);
}

fn finish(number: u32, quad: u32, quads: u32, near: Beside, factors: vec2<f32>, factor: f32, lid: u32) {
    let inside = quad < quads;
    let y = (near.a + near.b * factors.x * factors.y * near.w) * factor;
    if (inside && number == 0u) {
        h[quad] = y;
    }
    var share = 0.0;
    if (params.pack == 2u) {
        share = norm_share(y, params.k, params.next_eps);
    }
    acts_quad(params.k, quad, inside, y * near.u, share, lid);
}

// Every thread of a workgroup of WG calls.
fn acts_make(number: u32, lid: u32) {
    let quads = params.k >> 2u;
    var factor = 1.0;
    if (params.has_factor == 1u) {
        factor = s[0];
    }
    // All that is read is under way before any of it is used; by name, since an array in a loop would leave registers.
    let near0 = beside(lid, quads);
    let near1 = beside(WG + lid, quads);
    let near2 = beside(2u * WG + lid, quads);
    let sums = squares4(squares4(squares4(vec2<f32>(0.0), near0.b), near1.b), near2.b);
    let total = reduce_add2(sums, lid);
    let factors = inverse_root(total, f32(params.k), params.eps);
    finish(number, lid, quads, near0, factors, factor, lid);
    if (quads > WG) {
        finish(number, WG + lid, quads, near1, factors, factor, lid);
    }
    if (quads > 2u * WG) {
        finish(number, 2u * WG + lid, quads, near2, factors, factor, lid);
    }
    workgroupBarrier();
}
