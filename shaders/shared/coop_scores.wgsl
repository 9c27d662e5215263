// What lies in `scores` of attention_coop.wgsl, two threads to a row.
fn capped(s: f32) -> f32 {
    // Drivers return NaN from tanh of large arguments; 15 is past the last f32 below one.
    return select(s, params.softcap * tanh(clamp(s / max(params.softcap, 1e-30), -15.0, 15.0)), params.softcap > 0.0);
}

// The capped scores of four keys, or the lowest number for those that the row does not see.
fn weigh(at: u32, key: u32, start: u32, end: u32, mine: bool) -> vec4<f32> {
    let s = vec4<f32>(capped(scores[at]), capped(scores[at + 1u]), capped(scores[at + 2u]), capped(scores[at + 3u]));
    let keys = vec4<u32>(key, key + 1u, key + 2u, key + 3u);
    let seen = (keys >= vec4<u32>(start)) & (keys < vec4<u32>(end)) & vec4<bool>(mine);
    return select(vec4<f32>(LOWEST), s, seen);
}

// Writes 16 columns of the results that lie in `scores`.
fn finish(t: u32, head: u32, column: u32, total: f32, lid: u32) {
    workgroupBarrier();
    let half = (lid & 1u) * 8u;
    if (t < params.rows) {
        for (var i = 0u; i < 8u; i++) {
            y[(t * params.heads + head) * 128u + column + half + i] = scores[(lid >> 1u) * KEYS + half + i] / total;
        }
    }
    workgroupBarrier();
}

// Scales the 16 x 16 sums that lie in `scores`.
fn shrink_scores(lid: u32) {
    workgroupBarrier();
    let at = (lid >> 1u) * KEYS + (lid & 1u) * 8u;
    for (var i = 0u; i < 8u; i++) {
        scores[at + i] *= shrinks[lid >> 1u];
    }
    workgroupBarrier();
}
