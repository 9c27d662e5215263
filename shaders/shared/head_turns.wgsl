// Cosines and sines of the rows in `table`.
// Needs: table. Gives: head_turns.

// (cosines, sines) for quad `quad` of row t. The elements of a pair, i and i + dim / 2, are whole
// quads apart.
fn head_turns(t: u32, quad: u32, dim: u32) -> mat2x4<f32> {
    let at = ((t * dim) >> 2u) + 2u * (quad % max(dim >> 3u, 1u));
    let a = table[at];
    let b = table[at + 1u];
    return mat2x4<f32>(vec4<f32>(a.xz, b.xz), vec4<f32>(a.yw, b.yw));
}
