// The packed result of norm_add.wgsl: nothing (pack = 0), packed[r] = h[r] in 8 bits (pack_q8.wgsl;
// pack = 1), or h[r, d] u[d] with the shares of its norm (norm_pack_q8.wgsl; pack = 2). u [dim] f32
// (not read when has_u = 0), dim a multiple of 32 if pack > 0.
// Needs: params.pack, params.has_u, norm_share, params.dim, params.next_eps, pack_q8_quad. Gives:
// u, packed, norm_add_weight, norm_add_then.
@group(0) @binding(6) var<storage, read> u: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> packed: array<u32>;

fn norm_add_weight(at: u32) -> vec4<f32> {
    if (params.pack == 2u && params.has_u == 1u) {
        return u[at];
    }
    return vec4<f32>(1.0);
}

fn norm_add_then(row: u32, quad: u32, inside: bool, y: vec4<f32>, weight: vec4<f32>, lid: u32) {
    if (params.pack > 0u) { //~ unused: comparison, guard dropped
        let share = select(0.0, norm_share(y, params.dim, params.next_eps), params.pack == 2u);
        pack_q8_quad(row, params.dim, quad, inside, y * weight, share, lid);
    }
}
