// Signs of the IQ2 and IQ3 formats: grid magnitudes are bytes 1..62, signs are bits.
// The 4-bit mask is spread to one bit per byte, then each byte is negated in two's complement; no byte is 0, so none carries.
fn W_signed(grid: u32, signs: u32) -> vec4<f32> {
    let negative = ((signs & 15u) * 0x00204081u) & 0x01010101u;
    return vec4<f32>(unpack4xI8((grid ^ (negative * 255u)) + negative));
}

// Eight signs from seven stored bits: the eighth makes their number even.
fn W_signs8(bits: u32) -> u32 {
    return bits | ((countOneBits(bits) & 1u) << 7u);
}
