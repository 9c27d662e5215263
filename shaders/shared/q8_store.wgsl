// Writes activations in 8 bits into the binding `packed`, four per thread (q8_block.wgsl). Every
// thread of a workgroup of WG calls. Neighbouring threads, from a multiple of 8 on, have
// neighbouring quads. Each passes its part of the block's share.
// Needs: q8_quad, packed. Gives: pack_q8_quad.
fn pack_q8_quad(row: u32, k: u32, quad: u32, inside: bool, v: vec4<f32>, share: f32, lid: u32) {
    let part = q8_quad(inside, v, share, lid);
    if (!inside) {
        return;
    }
    let start = row * (k / 8u * 3u);
    packed[start + quad] = part.quants;
    let word = lid & 7u; //~ twice: mask
    if (word < 4u) {
        packed[start + (k >> 2u) + (quad >> 3u) * 4u + word] = part.word;
    }
}
