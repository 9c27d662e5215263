// The keys (first, one past the last) of one of `splits` parts of the keys that a row sees: below
// `end` and, with a window, at or after `here` - window. Part sizes are multiples of 16 keys and as
// equal as that allows, so no part takes another turn for a few keys. Some parts of short rows are
// empty.
// Needs: nothing. Gives: attention_part.
const SIXTEEN = 16u;

fn attention_part(end: u32, here: u32, window: u32, splits: u32, split: u32) -> vec2<u32> {
    let start = select(0u, here - min(here, window), window > 0u);
    let sixteens = (end - min(end, start) + SIXTEEN - 1u) / SIXTEEN;
    let bounds = vec2<u32>(split, split + 1u) * sixteens / splits;
    return min(start + SIXTEEN * bounds, vec2<u32>(end));
}
