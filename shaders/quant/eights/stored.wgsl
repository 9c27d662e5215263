// Elements 8 i.. of a row, of a format that stores eight of them in 16 bytes.
fn W_load8(row: u32, k: u32, i: u32) -> mat2x4<f32> {
    return W_eight_of(W[(row >> 2u) + i]);
}
