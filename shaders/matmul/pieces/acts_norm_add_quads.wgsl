// The row of acts_norm_add.wgsl with four elements per thread.
// Needs: params.has_weight, w, params.has_u, u, a, b, params.k, params.has_factor, s, WG,
// norm_share, params.eps, norm_leave, norm_factor, h, params.pack, params.next_eps, acts_quad.
// Gives: acts_make.

// Four neighbouring elements of all operands.
struct Beside { a: vec4<f32>, b: vec4<f32>, w: vec4<f32>, u: vec4<f32> }

fn beside(at: u32) -> Beside {
    var weight = vec4<f32>(1.0);
    if (params.has_weight == 1u) {
        weight = w[at];
    }
    var next = vec4<f32>(1.0);
    if (params.has_u == 1u) {
        next = u[at];
    }
    return Beside(a[at], b[at], weight, next);
}

// Every thread of a workgroup of WG calls.
fn acts_make(number: u32, lid: u32) {
    let quads = params.k >> 2u;
    var scale = 1.0;
    if (params.has_factor == 1u) {
        scale = s[0];
    }
    var factor = 1.0;
    for (var start = 0u; start < quads; start += WG) {
        let quad = start + lid;
        let inside = quad < quads;
        let near = beside(select(0u, quad, inside)); //~ dropped: off by one
        // Runs once, while the operands are loaded. Loads before the loop would duplicate the code
        // of the loads.
        for (var first = start; first == 0u; first = 1u) {
            var share = select(0.0, norm_share(near.b, params.k, params.eps), inside);
            for (var more = WG + lid; more < quads; more += WG) {
                share += norm_share(b[more], params.k, params.eps);
            }
            norm_leave(share, lid);
            workgroupBarrier();
            factor = norm_factor(quads);
        }
        let made = (near.a + near.b * factor * near.w) * scale;
        if (number == 0u && inside) {
            h[quad] = made;
        }
        var share = 0.0;
        if (params.pack == 2u) {
            share = norm_share(made, params.k, params.next_eps);
        }
        acts_quad(params.k, quad, inside, made * near.u, share, lid);
    }
    workgroupBarrier();
}
