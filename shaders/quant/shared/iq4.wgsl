// The 16 values of IQ4_NL and IQ4_XS (ggml's kvalues_iq4nl), as signed bytes:
// -127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113
// Each bit of a code chooses between halves of the table, for the four codes of a word at once.

// The bytes of `one` where a bit of the mask is set, those of `zero` elsewhere.
fn W_iq4_of(zero: u32, one: u32, mask: u32) -> u32 {
    return (zero & ~mask) | (one & mask);
}

// The values of four codes, one in the low half of each byte. The high halves of the bytes do not
// matter.
fn W_iq4(codes: u32) -> u32 {
    let bits = vec4<u32>(codes, codes >> 1u, codes >> 2u, codes >> 3u) & vec4<u32>(0x01010101u);
    let mask = bits * 255u;
    let a = W_iq4_of(W_iq4_of(0x81818181u, 0x98989898u, mask.x), W_iq4_of(0xadadadadu, 0xbfbfbfbfu, mask.x), mask.y);
    let b = W_iq4_of(W_iq4_of(0xcfcfcfcfu, 0xddddddddu, mask.x), W_iq4_of(0xeaeaeaeau, 0xf6f6f6f6u, mask.x), mask.y);
    let c = W_iq4_of(W_iq4_of(0x01010101u, 0x0d0d0d0du, mask.x), W_iq4_of(0x19191919u, 0x26262626u, mask.x), mask.y);
    let d = W_iq4_of(W_iq4_of(0x35353535u, 0x45454545u, mask.x), W_iq4_of(0x59595959u, 0x71717171u, mask.x), mask.y);
    return W_iq4_of(W_iq4_of(a, b, mask.z), W_iq4_of(c, d, mask.z), mask.w);
}
