// Elements 8 i.. of a row, of any format. The last quad stands for quads past the end of the row,
// which are multiplied with zeros.
fn W_load8(row: u32, k: u32, i: u32) -> mat2x4<f32> {
    return mat2x4<f32>(W_load4(row, k, 2u * i), W_load4(row, k, min(2u * i + 1u, (k - 1u) >> 2u))); //~ dropped: sign, off by one
}
