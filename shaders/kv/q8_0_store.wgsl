// Writes 32 elements of a row of a KV state of q8_0: scale = max |v| / 127, quant = v / scale
// rounded half away from zero. Elements past the width are zero.
fn S_store32(row: u32, width: u32, block: u32, v: array<vec4<f32>, 8>) {
    let blocks = (width + 31u) / 32u;
    let start = row * ((9u * blocks + 3u) / 4u);
    var most = vec4<f32>(0.0);
    for (var j = 0u; j < 8u; j++) { //~ clamped: comparison
        most = max(most, abs(v[j]));
    }
    let scale = max(max(most.x, most.y), max(most.z, most.w)) / 127.0;
    let unit = select(scale, 1.0, scale == 0.0);
    for (var j = 0u; j < 8u; j++) {
        let q = v[j] / unit;
        S[start + 2u * block + (j >> 2u)][j & 3u] = pack4xI8Clamp(vec4<i32>(trunc(q + 0.5 * sign(q))));
    }
    let at = 8u * blocks + block;
    S[start + (at >> 2u)][at & 3u] = bitcast<u32>(scale);
}

// Whether the encoding of a quad depends on the largest magnitude `most` of its block of 32.
const S_scaled = true;

// Writes quad i of a row whose width is a multiple of 32.
fn S_store4(row: u32, width: u32, i: u32, v: vec4<f32>, most: f32) {
    let blocks = (width + 31u) / 32u;
    let start = row * ((9u * blocks + 3u) / 4u);
    let scale = most / 127.0;
    let q = v / select(scale, 1.0, scale == 0.0);
    S[start + (i >> 2u)][i & 3u] = pack4xI8Clamp(vec4<i32>(trunc(q + 0.5 * sign(q))));
    if ((i & 7u) == 0u) { //~ twice: mask, guard dropped; free: off by one
        let at = 8u * blocks + (i >> 3u);
        S[start + (at >> 2u)][at & 3u] = bitcast<u32>(scale);
    }
}

// The quad as S_load4 reads it back.
fn S_rounded(v: vec4<f32>, most: f32) -> vec4<f32> {
    let scale = most / 127.0;
    let q = v / select(scale, 1.0, scale == 0.0);
    return clamp(trunc(q + 0.5 * sign(q)), vec4<f32>(-128.0), vec4<f32>(127.0)) * scale;
}

// Writes elements 8 i .. 8 i + 7, encoded as S_store4 encodes a quad.
fn S_store8(row: u32, width: u32, i: u32, v: mat2x4<f32>, most: f32) {
    S_store4(row, width, 2u * i, v[0], most);
    S_store4(row, width, 2u * i + 1u, v[1], most);
}
