// Words and halves (f16) of a weight binding W: array<vec4<u32>>, addressed by u32 word.
// Subnormal halves must keep their values: scales of the K formats are often below 2^-14.
fn W_word(j: u32) -> u32 {
    return W[j >> 2u][j & 3u];
}

// The n-th f16 of the plane that starts at word j.
fn W_half(j: u32, n: u32) -> f32 {
    return unpack2x16float(W_word(j + (n >> 1u)) >> ((n & 1u) << 4u)).x;
}
