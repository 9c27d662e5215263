// The keys (first, past the last) of one of `splits` parts of those that a row sees: below `end` and, with a window, at or after
// `here` - window. Parts are whole sixteens of keys, as near to equal as that allows, so that none goes round once more for a few;
// of rows that are shorter some are empty.
// Needs: nothing. Gives: attention_part.
const SIXTEEN = 16u;

fn attention_part(end: u32, here: u32, window: u32, splits: u32, split: u32) -> vec2<u32> {
    let start = select(0u, here - min(here, window), window > 0u);
    let sixteens = (end - min(end, start) + SIXTEEN - 1u) / SIXTEEN;
    let bounds = vec2<u32>(split, split + 1u) * sixteens / splits;
    return min(start + SIXTEEN * bounds, vec2<u32>(end));
}
