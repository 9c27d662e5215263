// Q8_0 in units: a unit is a block.
// W_middle: the quant in the middle of the range of quants.
const W_middle = 0.0;

fn W_halves(u: u32) -> vec2<u32> {
    return vec2<u32>(2u * u, 2u * u + 1u);
}

fn W_unit(row: u32, k: u32, u: u32) -> Unit {
    let at = (row >> 2u) + 2u * u;
    return Unit(W[at], W[at + 1u], vec2<f32>(W_half(row + (k >> 5u) * 8u, u)), vec2<f32>(0.0));
}
