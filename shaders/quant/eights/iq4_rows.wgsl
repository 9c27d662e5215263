// The codes of 16 elements, of eight in low halves of bytes and of eight in high halves, and their
// scale.
struct W_Sixteen { p: u32, q: u32, scale: f32 }

fn W_sixteen(row: u32, k: u32, j: u32) -> W_Sixteen {
    let at = row + ((j >> 1u) << 2u) + ((j & 1u) << 1u);
    return W_Sixteen(W_word(at), W_word(at + 1u), W_iq4_scale(row, k, j >> 1u));
}

fn W_dot16(w: W_Sixteen, low: mat2x4<f32>, high: mat2x4<f32>) -> f32 {
    return w.scale * (dot(W_look(w.p), low[0]) + dot(W_look(w.q), low[1]) + dot(W_look(w.p >> 4u), high[0]) + dot(W_look(w.q >> 4u), high[1]));
}

// One thread's part of the products of four rows with row t of the activations, 16 columns of half
// a block at a time, and of the activations' share. All rows are loaded before one is used.
fn W_part(at: vec4<u32>, k: u32, t: u32, lid: u32) -> Part {
    var part = Part();
    for (var j = lid; j < (k >> 4u); j += WG) {
        let a = W_sixteen(at.x, k, j);
        let b = W_sixteen(at.y, k, j);
        let c = W_sixteen(at.z, k, j);
        let d = W_sixteen(at.w, k, j);
        let i = ((j >> 1u) << 2u) + (j & 1u);
        let low = acts8(t, i);
        let high = acts8(t, i + 2u);
        part.sums += vec4<f32>(W_dot16(a, low.v, high.v), W_dot16(b, low.v, high.v), W_dot16(c, low.v, high.v), W_dot16(d, low.v, high.v));
        part.share += low.share + high.share;
    }
    return part;
}
