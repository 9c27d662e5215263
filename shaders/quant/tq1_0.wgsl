// TQ1_0: ggml's block_tq1_0 { u8 qs[48]; u8 qh[4]; f16 d }, 256 elements in 54 bytes. A byte holds
// 5 trits (4 in qh). The n-th trit is ((byte * 3^n mod 256) * 3) >> 8. Elements 32n + l are in
// qs[l], 160 + 16n + l in qs[32 + l], 240 + 4n + l in qh[l].
// Row (nb = k / 256): planes qs [48 nb bytes], qh [4 nb], d [2 nb], padded to 16 bytes.
// w = d * (trit - 1).
// Source: ggml-common.h; gguf-py quants.py.
fn W_row(r: u32, k: u32) -> u32 {
    return r * ((((k >> 8u) * 54u + 15u) >> 4u) << 2u);
}

// Trits of bytes 0 and 2 of x, in bytes 0 and 2 of the result. Each byte is computed in 16 bits.
fn W_trits(x: u32, power: u32) -> u32 {
    return (((((x & 0x00ff00ffu) * power) & 0x00ff00ffu) * 3u) >> 8u) & 0x00030003u;
}

fn W_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let nb = k >> 8u;
    let b = i >> 6u;
    let q = i & 63u;
    var j = row + b * 12u + (q & 7u);
    var n = q >> 3u;
    if q >= 60u {
        j = row + nb * 12u + b;
        n = q - 60u; //~ bits: sign
    } else if q >= 40u {
        j = row + b * 12u + 8u + (q & 3u);
        n = (q - 40u) >> 2u;
    }
    let power = select((0x1b090301u >> ((n & 3u) << 3u)) & 255u, 81u, n == 4u); //~ bits: mask
    let x = W_word(j);
    let trits = W_trits(x, power) | (W_trits(x >> 8u, power) << 8u);
    return W_half(row + nb * 13u, b) * (vec4<f32>(unpack4xU8(trits)) - 1.0);
}
