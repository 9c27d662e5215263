// Whether a float is finite. Compilers may assume that a comparison sees no NaN, so the bits of the
// float are compared instead.
// Needs: nothing. Gives: is_number.
fn is_number(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7f800000u) != 0x7f800000u;
}
