// The row of acts_norm_add.wgsl with eight elements per thread. Groups of 32 threads without
// elements only wait.
// Needs: params.has_weight, w, params.has_u, u, a, b, norm_share, params.k, lanes_other, q8_scale,
// q8_quants, lanes_other2, q8_part, x, WG, params.eps, h, params.next_eps, params.pack,
// params.has_factor, s, lanes_busy, norm_leave, norm_factor. Gives: acts_make.

// Eight neighbouring elements of all operands.
struct Beside { a: mat2x4<f32>, b: mat2x4<f32>, w: mat2x4<f32>, u: mat2x4<f32> }

// The elements from quad `at` on.
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

// Packs eight elements of the row. Four neighbouring threads share a block.
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

fn busy_share(first: f32, eights: u32, lid: u32) -> f32 {
    var share = first;
    for (var start = WG; start < eights; start += WG) {
        let at = 2u * min(start + lid, eights - 1u);
        share += select(0.0, share_of(mat2x4<f32>(b[at], b[at + 1u]), params.eps), start + lid < eights);
    }
    return share;
}

// Makes the eights after the first WG.
fn acts_more(number: u32, eights: u32, factor: f32, scale: f32, lid: u32) {
    for (var start = WG; start < eights; start += WG) {
        let eight = start + lid;
        let inside = eight < eights;
        let far = beside(2u * min(eight, eights - 1u));
        let h2 = (far.a[0] + far.b[0] * factor * far.w[0]) * scale;
        let h3 = (far.a[1] + far.b[1] * factor * far.w[1]) * scale;
        if (number == 0u && inside) {
            h[2u * eight] = h2;
            h[2u * eight + 1u] = h3;
        }
        let share = select(0.0, share_of(mat2x4<f32>(h2, h3), params.next_eps), params.pack == 2u);
        acts_eight(eight, inside, mat2x4<f32>(h2 * far.u[0], h3 * far.u[1]), share, lid);
    }
}

// Every thread of a workgroup of WG calls. The first eight of a thread is made here, the others
// behind conditions on constants. One function for both took 5% longer, a loop 9%.
fn acts_make(number: u32, lid: u32) {
    let eights = params.k >> 3u;
    var scale = 1.0;
    if (params.has_factor == 1u) {
        scale = s[0];
    }
    let busy = lanes_busy((lid & ~31u) < eights); //~ surplus: comparison, off by one
    let inside = lid < eights;
    var near: Beside;
    if (busy) { //~ surplus: guard dropped
        near = beside(select(0u, 2u * lid, inside)); //~ dropped: off by one
        var share = select(0.0, share_of(near.b, params.eps), inside);
        if (eights > WG) {
            share = busy_share(share, eights, lid);
        }
        norm_leave(share, lid);
    }
    workgroupBarrier();
    if (busy) { //~ surplus: guard dropped
        let factor = norm_factor(eights);
        let h0 = (near.a[0] + near.b[0] * factor * near.w[0]) * scale;
        let h1 = (near.a[1] + near.b[1] * factor * near.w[1]) * scale;
        if (number == 0u && inside) {
            h[2u * lid] = h0;
            h[2u * lid + 1u] = h1;
        }
        var share = 0.0;
        if (params.pack == 2u) {
            share = share_of(mat2x4<f32>(h0, h1), params.next_eps);
        }
        acts_eight(lid, inside, mat2x4<f32>(h0 * near.u[0], h1 * near.u[1]), share, lid);
        if (eights > WG) {
            acts_more(number, eights, factor, scale, lid);
        }
    }
    workgroupBarrier();
}
