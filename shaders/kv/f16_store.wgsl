// Writes 32 elements of a row of a KV state of f16, rounded to nearest even. Elements past the
// width are zero.
fn S_store32(row: u32, width: u32, block: u32, v: array<vec4<f32>, 8>) {
    let eights = (width + 7u) / 8u;
    for (var j = 0u; j < min(4u, eights - 4u * block); j++) {
        let a = v[2u * j];
        let b = v[2u * j + 1u];
        S[row * eights + 4u * block + j] =
            vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
    }
}

// Whether the encoding of a quad depends on the largest magnitude `most` of its block of 32.
const S_scaled = false;

// Writes quad i of a row whose width is a multiple of 32.
fn S_store4(row: u32, width: u32, i: u32, v: vec4<f32>, most: f32) {
    let at = row * ((width + 7u) / 8u) + (i >> 1u);
    S[at][2u * (i & 1u)] = pack2x16float(v.xy);
    S[at][2u * (i & 1u) + 1u] = pack2x16float(v.zw);
}

// The quad as S_load4 reads it back.
fn S_rounded(v: vec4<f32>, most: f32) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(pack2x16float(v.xy)), unpack2x16float(pack2x16float(v.zw)));
}

// Writes elements 8 i .. 8 i + 7, encoded as S_store4 encodes a quad.
fn S_store8(row: u32, width: u32, i: u32, v: mat2x4<f32>, most: f32) {
    S[row * (width / 8u) + i] = vec4<u32>(pack2x16float(v[0].xy), pack2x16float(v[0].zw), pack2x16float(v[1].xy), pack2x16float(v[1].zw));
}
