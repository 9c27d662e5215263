// Groups g and g + 1 of 16 elements, g even, as bytes, for formats whose units are blocks: one
// unit, with 128 added to its signed quants.
struct W_Raw { unit: Unit }

// w = scale byte - least, for two groups of 16.
struct W_Groups { first: vec4<u32>, second: vec4<u32>, scale: vec2<f32>, least: vec2<f32> }

fn W_raw(row: u32, k: u32, g: u32) -> W_Raw {
    return W_Raw(W_unit(row, k, g >> 1u));
}

fn W_groups(raw: W_Raw, g: u32) -> W_Groups {
    let up = vec4<u32>(0x80808080u);
    return W_Groups(raw.unit.low ^ up, raw.unit.high ^ up, raw.unit.scale, raw.unit.least + 128.0 * raw.unit.scale);
}

// Block `block` of 32 elements, with one scale.
const W_alike = true;

fn W_block_of(raw: W_Raw, block: u32) -> Unit {
    return raw.unit;
}
