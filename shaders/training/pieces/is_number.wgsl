// Whether a float is finite. Compilers may assume that comparisons see no NaN; bits they must keep.
// Needs: nothing. Gives: is_number.
fn is_number(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7f800000u) != 0x7f800000u;
}
