// Writes 32 elements (those past the width are zero) of a row of a KV state of f16, rounded to nearest even.
fn S_store32(row: u32, width: u32, block: u32, v: array<vec4<f32>, 8>) {
    let eights = (width + 7u) / 8u;
    for (var j = 0u; j < min(4u, eights - 4u * block); j++) {
        let a = v[2u * j];
        let b = v[2u * j + 1u];
        S[row * eights + 4u * block + j] =
            vec4<u32>(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
    }
}
