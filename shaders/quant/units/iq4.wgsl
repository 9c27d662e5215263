// IQ4_NL and IQ4_XS in units, for tiles: a unit is the 32 elements of a scale. It is unpacked when
// it is staged: until then it is 5 words, and unpacked it would be 12.
fn W_halves(u: u32) -> vec2<u32> {
    return vec2<u32>(2u * u, 2u * u + 1u);
}

// A unit as it is stored, and its scale.
struct W_Held { q: vec4<u32>, scale: f32 }

fn W_held(row: u32, k: u32, u: u32) -> W_Held {
    return W_Held(W[(row >> 2u) + u], W_iq4_scale(row, k, u));
}
