// Fifth bits for the bytes of four words. Word n gets bits 4 (first + n).. of `bits`, one bit in
// each byte.
fn W_fifth(bits: u32, first: u32) -> vec4<u32> {
    let nibbles = (vec4<u32>(bits) >> (4u * (vec4<u32>(0u, 1u, 2u, 3u) + first))) & vec4<u32>(15u); //~ bits: sign
    return (nibbles * 0x02040810u) & vec4<u32>(0x10101010u);
}
