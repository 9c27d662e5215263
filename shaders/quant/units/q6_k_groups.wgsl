// Groups g and g + 1 of 16 elements, g even, as bytes. The two halves of 128 elements share the
// loaded pieces of 16 bytes.
struct W_Raw { first: vec4<u32>, second: vec4<u32>, of_first: vec4<u32>, of_second: vec4<u32>, scales: u32, d: f32 }

// w = scale byte - least, for two groups of 16.
struct W_Groups { first: vec4<u32>, second: vec4<u32>, scale: vec2<f32>, least: vec2<f32> }

fn W_raw(row: u32, k: u32, g: u32) -> W_Raw {
    let nb = k >> 8u;
    let block = g >> 4u;
    let half = (g >> 3u) & 1u;
    let start = row >> 2u;
    let low = start + 8u * block + 4u * half + (g & 3u);
    let upper = start + 8u * nb + 4u * block + 2u * half;
    let scales = W_word(row + 48u * nb + 4u * block + ((g >> 2u) & 3u));
    return W_Raw(W[low], W[low + 1u], W[upper], W[upper + 1u], scales, W_half(row + 52u * nb, block));
}

fn W_groups(raw: W_Raw, g: u32) -> W_Groups {
    let high = 4u * ((g >> 2u) & 1u);
    let shift = vec4<u32>(high);
    let upper = vec4<u32>(high + (g & 2u));
    let low = vec4<u32>(0x0f0f0f0fu);
    let two = vec4<u32>(0x03030303u);
    let first = ((raw.first >> shift) & low) | (((raw.of_first >> upper) & two) << vec4<u32>(4u));
    let second = ((raw.second >> shift) & low) | (((raw.of_second >> upper) & two) << vec4<u32>(4u));
    // Two of the word's four signed bytes.
    let up = 24u - 8u * (g & 3u); //~ alike: sign
    let scales = vec2<i32>(bitcast<i32>(raw.scales << up), bitcast<i32>(raw.scales << (up - 8u))) >> vec2<u32>(24u);
    let scale = raw.d * vec2<f32>(scales);
    return W_Groups(first, second, scale, 32.0 * scale);
}

// Block `block` of 32 elements, with two scales.
const W_alike = false;

fn W_block_of(raw: W_Raw, block: u32) -> Unit {
    let groups = W_groups(raw, 2u * block);
    return Unit(W_signed(groups.first), W_signed(groups.second), groups.scale, vec2<f32>(0.0));
}
