// Q5_0 in units: a unit is a block.
// W_middle: the quant in the middle of the range of quants.
const W_middle = 16.0;

fn W_halves(u: u32) -> vec2<u32> {
    return vec2<u32>(2u * u, 2u * u + 1u);
}

fn W_unit(row: u32, k: u32, u: u32) -> Unit {
    let nb = k >> 5u;
    let q = W[(row >> 2u) + u];
    let bits = W_word(row + nb * 4u + u);
    let d = W_half(row + nb * 5u, u);
    let low = (q & vec4<u32>(0x0f0f0f0fu)) | W_fifth(bits, 0u);
    let high = ((q >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | W_fifth(bits, 4u);
    return Unit(low, high, vec2<f32>(d), vec2<f32>(16.0 * d));
}
