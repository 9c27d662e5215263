// The keys that row t of a step of documents sees: from .x on, below .y. spans [rows, 3]: the first
// row of the row's document, the row after its last, and the first row that a bidirectional row
// does not see.
// Needs: params.window, spans, params.causal. Gives: keys_seen.
fn keys_seen(t: u32) -> vec2<u32> {
    let here = t + 1u;
    let start = select(0u, here - min(here, params.window), params.window > 0u);
    return vec2<u32>(max(spans[3u * t], start), select(spans[3u * t + 2u], here, params.causal == 1u)); //~ never: off by one
}
