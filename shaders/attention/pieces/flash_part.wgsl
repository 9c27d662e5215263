// One of params.splits parts of the keys of attention_flash.wgsl: sums of values, then the
// reference score and the sum of weights, as attention_split.wgsl leaves them. Every part is
// written.
// Needs: KEYS, params.splits, HEAD, y. Gives: keys_of_part, result_place, result_factor,
// leave_total.

// The first key, at the start of a tile, and one past the last.
fn keys_of_part(from_key: u32, to_key: u32, split: u32) -> vec2<u32> {
    let start = from_key / KEYS * KEYS;
    let tiles = (to_key - start + KEYS - 1u) / KEYS; //~ free: sign, product
    let bounds = vec2<u32>(split, split + 1u) * tiles / params.splits; //~ free: product
    return min(start + KEYS * bounds, vec2<u32>(to_key));
}

// Where this part of the head that begins at `start` in q begins.
fn result_place(start: u32, split: u32) -> u32 {
    return (start / (HEAD / 4u) * params.splits + split) * (HEAD / 4u + 1u);
}

fn result_factor(total: f32) -> f32 {
    return 1.0;
}

fn leave_total(most: f32, total: f32, lane: u32, within: bool, place: u32) {
    if (within && lane == 0u) { //~ free: off by one
        y[place + HEAD / 4u] = vec4<f32>(most, total, 0.0, 0.0);
    }
}
