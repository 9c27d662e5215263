// The row that a product reads, made by each of its workgroups: h = s (a + b / sqrt(mean b^2 + eps) * w), and 8 bits of h (pack = 1), or of h u
// with the shares of its norm (pack = 2; norm_pack_q8.wgsl). The workgroup 0 writes h for those who read it later.
// a, b, h f32 [k], w, u f32 [k] (not read when has_weight = 0, has_u = 0), s one f32 (1 when has_factor = 0), k a multiple of 32, of 2560 at most.
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> s: array<f32>;
@group(0) @binding(5) var<storage, read> u: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> h: array<vec4<f32>>;

// Sums of every 32 threads.
var<workgroup> norm_shares: array<f32, WG / 32u>;

// Eight neighbouring elements of everything.
struct Beside { a: mat2x4<f32>, b: mat2x4<f32>, w: mat2x4<f32>, u: mat2x4<f32> }

// Those from quad `at` on.
fn beside(at: u32) -> Beside {
    let one = vec4<f32>(1.0);
    var weight = mat2x4<f32>(one, one);
    if (params.has_weight == 1u) {
        weight = mat2x4<f32>(w[at], w[at + 1u]);
    }
    var next = mat2x4<f32>(one, one);
    if (params.has_u == 1u) {
        next = mat2x4<f32>(u[at], u[at + 1u]);
    }
    return Beside(mat2x4<f32>(a[at], a[at + 1u]), mat2x4<f32>(b[at], b[at + 1u]), weight, next);
}

fn share_of(v: mat2x4<f32>, eps: f32) -> f32 {
    return norm_share(v[0], params.k, eps) + norm_share(v[1], params.k, eps);
}

// The factor of the norm of b, from the first shares of all threads.
fn norm_factor(first: f32, lid: u32) -> f32 {
    var share = first;
    for (var eight = WG + lid; eight < (params.k >> 3u); eight += WG) {
        share += share_of(mat2x4<f32>(b[2u * eight], b[2u * eight + 1u]), params.eps);
    }
    let part = lanes_add(share, 32u, lid);
    if (lid % 32u == 0u) {
        norm_shares[lid / 32u] = part;
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var g = 0u; g < WG / 32u; g++) {
        sum += norm_shares[g];
    }
    return acts_factor(sum);
}

// Packs eight elements of the row; four neighbouring threads have a block.
fn acts_eight(eight: u32, inside: bool, v: mat2x4<f32>, share: f32, lid: u32) {
    let four = max(abs(v[0]), abs(v[1]));
    var largest = max(max(four.x, four.y), max(four.z, four.w));
    largest = max(largest, lanes_other(largest, 1u, lid));
    largest = max(largest, lanes_other(largest, 2u, lid));
    let scale = q8_scale(largest);
    let near = q8_quants(v[0], scale);
    let far = q8_quants(v[1], scale);
    let both = near + far;
    var sums = vec2<f32>(both.x + both.y + (both.z + both.w), share);
    sums += lanes_other2(sums, 1u, lid);
    let others = lanes_other2(sums, 2u, lid);
    if (!inside) {
        return;
    }
    let upper = (lid & 2u) == 2u;
    let part = q8_part(near, scale, select(sums, others, upper), select(others, sums, upper), lid);
    let at = 2u * (eight & 1u);
    x[eight >> 1u][at] = part.quants;
    x[eight >> 1u][at + 1u] = pack4xI8Clamp(vec4<i32>(far));
    x[(params.k >> 4u) + (eight >> 2u)][eight & 3u] = part.word;
}

// Every thread of a workgroup of WG calls.
fn acts_make(number: u32, lid: u32) {
    let eights = params.k >> 3u;
    var scale = 1.0;
    if (params.has_factor == 1u) {
        scale = s[0];
    }
    var factor = 1.0;
    for (var start = 0u; start < eights; start += WG) {
        let eight = start + lid;
        let inside = eight < eights;
        let near = beside(select(0u, 2u * eight, inside));
        // Once, while all that is read is under way: loads before the loop would be code a second time.
        for (var first = start; first == 0u; first = 1u) {
            factor = norm_factor(select(0.0, share_of(near.b, params.eps), inside), lid);
        }
        let h0 = (near.a[0] + near.b[0] * factor * near.w[0]) * scale;
        let h1 = (near.a[1] + near.b[1] * factor * near.w[1]) * scale;
        if (number == 0u && inside) {
            h[2u * eight] = h0;
            h[2u * eight + 1u] = h1;
        }
        var share = 0.0;
        if (params.pack == 2u) {
            share = share_of(mat2x4<f32>(h0, h1), params.next_eps);
        }
        acts_eight(eight, inside, mat2x4<f32>(h0 * near.u[0], h1 * near.u[1]), share, lid);
    }
    workgroupBarrier();
}
