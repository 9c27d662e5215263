// The keys (first, past the last) of one of `splits` parts of those that a row sees: below `end` and, with a window, at or after
// `here` - window. Parts have 32 keys at least, so short rows fill the first few, and the others are empty.
fn attention_part(end: u32, here: u32, window: u32, splits: u32, split: u32) -> vec2<u32> {
    let start = select(0u, here - min(here, window), window > 0u);
    let each = max(32u, (end - min(end, start) + splits - 1u) / splits);
    let first = min(start + split * each, end);
    return vec2<u32>(first, min(first + each, end));
}

// Parts that hold keys.
fn attention_parts(end: u32, here: u32, window: u32, splits: u32) -> u32 {
    let start = select(0u, here - min(here, window), window > 0u);
    let keys = end - min(end, start);
    let each = max(32u, (keys + splits - 1u) / splits);
    return (keys + each - 1u) / each;
}
