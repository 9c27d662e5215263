// Writes 32 elements of a row of a KV state of f32. Elements past the width are zero.
fn S_store32(row: u32, width: u32, block: u32, v: array<vec4<f32>, 8>) {
    let quads = (width + 3u) / 4u;
    for (var j = 0u; j < min(8u, quads - 8u * block); j++) {
        S[row * quads + 8u * block + j] = bitcast<vec4<u32>>(v[j]);
    }
}

// Whether the encoding of a quad depends on the largest magnitude `most` of its block of 32.
const S_scaled = false;

// Writes quad i of a row whose width is a multiple of 32.
fn S_store4(row: u32, width: u32, i: u32, v: vec4<f32>, most: f32) {
    S[row * ((width + 3u) / 4u) + i] = bitcast<vec4<u32>>(v);
}

// The quad as S_load4 reads it back.
fn S_rounded(v: vec4<f32>, most: f32) -> vec4<f32> {
    return v;
}

// Writes elements 8 i .. 8 i + 7, encoded as S_store4 encodes a quad.
fn S_store8(row: u32, width: u32, i: u32, v: mat2x4<f32>, most: f32) {
    S[row * (width / 4u) + 2u * i] = bitcast<vec4<u32>>(v[0]);
    S[row * (width / 4u) + 2u * i + 1u] = bitcast<vec4<u32>>(v[1]);
}
