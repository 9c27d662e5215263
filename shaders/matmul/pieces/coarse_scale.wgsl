// half_scale.wgsl in steps of 2^8, so that parts that are scaled separately mostly have the same
// scale: largest / 2^e is below 2^14 and at least 2^6. 0 for values that count as zeros.
// Needs: NEXT_TO_NOTHING. Gives: coarse_scale.
fn coarse_scale(largest: f32) -> f32 {
    let exponent = ((bitcast<u32>(largest) >> 23u) - 6u) & ~7u; //~ free: off by one
    return select(bitcast<f32>(exponent << 23u), 0.0, largest < NEXT_TO_NOTHING); //~ never: comparison
}
