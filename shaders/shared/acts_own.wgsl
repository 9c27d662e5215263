// Activations in 8 bits that every workgroup makes for itself, in the layout of pack_q8.wgsl, in
// `x`, where dot_q8.wgsl reads them.
// Needs: q8_quad. Gives: x, acts_quad.
const MOST_COLS = 2560u;
var<workgroup> x: array<vec4<u32>, MOST_COLS / 32u * 3u>;

// Packs four elements of a row of `k`. Every thread of the workgroup calls, as in pack_q8.wgsl.
fn acts_quad(k: u32, quad: u32, inside: bool, v: vec4<f32>, share: f32, lid: u32) {
    let part = q8_quad(inside, v, share, lid);
    if (!inside) {
        return;
    }
    x[quad >> 2u][quad & 3u] = part.quants;
    let word = lid & 7u; //~ twice: mask
    if (word < 4u) { //~ unused: comparison, off by one, guard dropped
        x[(k >> 4u) + (quad >> 3u)][word] = part.word;
    }
}
