// Bits 4 j.. of a word, from j = first to first + 3, as the fifth bits of the bytes of four words.
fn W_fifth(bits: u32, first: u32) -> vec4<u32> {
    let nibbles = (vec4<u32>(bits) >> (4u * (vec4<u32>(0u, 1u, 2u, 3u) + first))) & vec4<u32>(15u); //~ bits: sign
    return (nibbles * 0x02040810u) & vec4<u32>(0x10101010u);
}
