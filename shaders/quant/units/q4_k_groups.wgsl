// Groups g and g + 1 of 16 elements, g even, as bytes: sub-block g / 2, which shares its 32 bytes
// with a neighbouring sub-block.
struct W_Raw { first: vec4<u32>, second: vec4<u32>, head: vec4<u32> }

// w = scale byte - least, for two groups of 16.
struct W_Groups { first: vec4<u32>, second: vec4<u32>, scale: vec2<f32>, least: vec2<f32> }

fn W_raw(row: u32, k: u32, g: u32) -> W_Raw {
    let block = (row >> 2u) + (g >> 4u) * 9u;
    let at = block + 1u + 2u * ((g >> 2u) & 3u);
    return W_Raw(W[at], W[at + 1u], W[block]);
}

fn W_groups(raw: W_Raw, g: u32) -> W_Groups {
    let sm = W_scale_mins(raw.head, (g >> 2u) & 3u);
    let odd = (g & 2u) == 2u;
    let shift = vec4<u32>(select(0u, 4u, odd));
    let low = vec4<u32>(0x0f0f0f0fu);
    let scale = select(sm.x, sm.y, odd);
    let least = select(sm.z, sm.w, odd);
    return W_Groups((raw.first >> shift) & low, (raw.second >> shift) & low, vec2<f32>(scale), vec2<f32>(least));
}

// Block `block` of 32 elements, with one scale. It is W_groups written so that values that depend
// only on the block's number are the same for every row.
const W_alike = true;

fn W_block_of(raw: W_Raw, block: u32) -> Unit {
    let late = (block & 4u) == 4u;
    let at = 8u * (block & 3u);
    let upper = (raw.head.yz >> vec2<u32>(at + 2u)) & vec2<u32>(select(0u, 0x30u, late));
    let lower = select(raw.head.yz >> vec2<u32>(at), raw.head.ww >> vec2<u32>(at, at + 4u), late) & vec2<u32>(select(0x3fu, 0x0fu, late));
    let scale = unpack2x16float(raw.head.x) * vec2<f32>(lower | upper);
    let shift = vec4<u32>(4u * (block & 1u));
    let low = vec4<u32>(0x0f0f0f0fu);
    return Unit((raw.first >> shift) & low, (raw.second >> shift) & low, scale.xx, scale.yy);
}
