// Groups g and g + 1 of 16 elements, g even, as bytes: sub-block g / 2, which shares its 32 bytes
// with a neighbouring sub-block and has fifth bits of its own.
struct W_Raw { first: vec4<u32>, second: vec4<u32>, of_first: vec4<u32>, of_second: vec4<u32>, head: vec4<u32> }

// w = scale byte - least, for two groups of 16.
struct W_Groups { first: vec4<u32>, second: vec4<u32>, scale: vec2<f32>, least: vec2<f32> }

fn W_raw(row: u32, k: u32, g: u32) -> W_Raw {
    let block = (row >> 2u) + (g >> 4u) * 11u;
    let at = block + 3u + 2u * ((g >> 2u) & 3u);
    return W_Raw(W[at], W[at + 1u], W[block + 1u], W[block + 2u], W[block]);
}

fn W_groups(raw: W_Raw, g: u32) -> W_Groups {
    let sm = W_scale_mins(raw.head, (g >> 2u) & 3u);
    let odd = (g & 2u) == 2u;
    let shift = vec4<u32>(select(0u, 4u, odd));
    let sub = vec4<u32>((g >> 1u) & 7u);
    let low = vec4<u32>(0x0f0f0f0fu);
    let bit = vec4<u32>(0x01010101u);
    let first = ((raw.first >> shift) & low) | (((raw.of_first >> sub) & bit) << vec4<u32>(4u));
    let second = ((raw.second >> shift) & low) | (((raw.of_second >> sub) & bit) << vec4<u32>(4u));
    let scale = select(sm.x, sm.y, odd);
    let least = select(sm.z, sm.w, odd);
    return W_Groups(first, second, vec2<f32>(scale), vec2<f32>(least));
}

// Block `block` of 32 elements, with one scale.
const W_alike = true;

fn W_block_of(raw: W_Raw, block: u32) -> Unit {
    let groups = W_groups(raw, 2u * block);
    return Unit(groups.first, groups.second, groups.scale, groups.least);
}
