// Signs of the IQ2 and IQ3 formats. Grid magnitudes are bytes 1..62, signs are bits. The 4-bit mask
// is spread to one bit per byte. Then each marked byte is negated in two's complement. No byte is
// 0, so no byte carries into the next.
fn W_signed(grid: u32, signs: u32) -> vec4<f32> {
    let negative = ((signs & 15u) * 0x00204081u) & 0x01010101u;
    return vec4<f32>(unpack4xI8((grid ^ (negative * 255u)) + negative));
}

// Eight signs from seven stored bits. The eighth bit makes the number of set bits even.
fn W_signs8(bits: u32) -> u32 {
    return bits | ((countOneBits(bits) & 1u) << 7u);
}
