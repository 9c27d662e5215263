// The keys (first, past the last) of one of `splits` parts of those that a row sees: below `end` and, with a window, at or after
// `here` - window. Parts have 64 keys at least, so short rows fill the first few, and the others are empty.
fn attention_part(end: u32, here: u32, window: u32, splits: u32, split: u32) -> vec2<u32> {
    let start = select(0u, here - min(here, window), window > 0u);
    let each = max(64u, (end - min(end, start) + splits - 1u) / splits);
    let first = min(start + split * each, end);
    return vec2<u32>(first, min(first + each, end));
}
