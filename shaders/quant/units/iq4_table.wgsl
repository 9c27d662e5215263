// The values of IQ4_NL and IQ4_XS (shared/iq4.wgsl) over 128, for every pair of codes, in workgroup
// memory. Divided by 128 they leave the scale, which is multiplied by 128, in the range of f16.
var<workgroup> W_pairs: array<vec2<f16>, 256>;

fn W_value(code: u32) -> f16 {
    return f16(unpack4xI8(W_iq4(code)).x) / 128.0h;
}

// Every thread calls it before the first unit is staged.
fn W_begin(lid: u32) {
    for (var i = lid; i < 256u; i += WG) {
        W_pairs[i] = vec2<f16>(W_value(i & 15u), W_value(i >> 4u));
    }
    workgroupBarrier();
}

// The values of four codes, one in the low half of each byte.
fn W_values(codes: u32) -> vec4<f16> {
    let near = (codes & 15u) | ((codes >> 4u) & 0xf0u);
    let far = ((codes >> 16u) & 15u) | ((codes >> 20u) & 0xf0u);
    return vec4<f16>(W_pairs[near], W_pairs[far]);
}
