// The results of attention_flash.wgsl: a workgroup has all keys of its queries.
// Needs: KEYS. Gives: keys_of_part, result_place, result_factor, leave_total.

// The first key, at the start of a tile, and one past the last.
fn keys_of_part(from_key: u32, to_key: u32, split: u32) -> vec2<u32> {
    return vec2<u32>(from_key / KEYS * KEYS, to_key);
}

// Where the results of the head that begins at `start` in q begin.
fn result_place(start: u32, split: u32) -> u32 {
    return start;
}

fn result_factor(total: f32) -> f32 {
    return 1.0 / total;
}

fn leave_total(most: f32, total: f32, lane: u32, within: bool, place: u32) {
}
