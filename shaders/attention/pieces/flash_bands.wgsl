// The matrices of a subgroup of attention_flash.wgsl: 16 or 32 queries (BAND), by 16 columns of the
// head, by 16 or 32 keys (KEYS). Each subgroup uses its own region of workgroup memory here.
// Needs: BAND, KEYS, kv, q, params.scale, LARGEST, WIDE, SCORES, scores, ps, PITCH, shrinks, y.
// Gives: Sums, Queries, Column, Scores, queries, score, leave_scores, weights, add, shrunk, finish.
const_assert BAND == 16u || KEYS == 16u;
alias Left = coop_mat16x16<f16, A>;
alias Sums = coop_mat16x16<f32, C>;
// The upper and the lower 16 queries. `lower` is unused where BAND is 16.
struct Queries { upper: Left, lower: Left }
struct Column { upper: Sums, lower: Sums }
// `upper_far` is for the second 16 keys. BAND or KEYS is 16, so there is no `lower_far`.
struct Scores { upper: Sums, lower: Sums, upper_far: Sums }
struct Weights { upper: Left, lower: Left, upper_far: Left }

// 16 columns of the scaled queries, as f16. `starts` has the indices into q of this lane's quads,
// one of every eighth query.
fn queries(starts: vec4<u32>, region: u32, lane: u32) -> Queries {
    subgroupBarrier();
    kv[(region + lane) >> 1u][lane & 1u] = vec4<f16>(clamp(q[starts.x] * params.scale, -LARGEST, LARGEST));
    kv[(region + lane + 32u) >> 1u][lane & 1u] = vec4<f16>(clamp(q[starts.y] * params.scale, -LARGEST, LARGEST));
    if (BAND > 16u) {
        kv[(region + lane + 64u) >> 1u][lane & 1u] = vec4<f16>(clamp(q[starts.z] * params.scale, -LARGEST, LARGEST));
        kv[(region + lane + 96u) >> 1u][lane & 1u] = vec4<f16>(clamp(q[starts.w] * params.scale, -LARGEST, LARGEST));
    }
    subgroupBarrier();
    var both: Queries;
    both.upper = coopLoadT<Left>(&kv[region >> 1u][0], 4u);
    if (BAND > 16u) {
        both.lower = coopLoadT<Left>(&kv[(region + 64u) >> 1u][0], 4u); //~ rounded: off by one
    }
    return both;
}

// Adds the products of 16 columns to the scores.
fn score(sums: Scores, left: Queries, column: u32) -> Scores {
    var s = sums;
    let near = coopLoad<coop_mat16x16<f16, B>>(&kv[column >> 1u][0], WIDE);
    s.upper = coopMultiplyAdd(left.upper, near, s.upper);
    if (BAND > 16u) {
        s.lower = coopMultiplyAdd(left.lower, near, s.lower);
    }
    if (KEYS > 16u) {
        let far = coopLoad<coop_mat16x16<f16, B>>(&kv[(16u * WIDE + column) >> 1u][0], WIDE);
        s.upper_far = coopMultiplyAdd(left.upper, far, s.upper_far);
    }
    return s;
}

// Leaves the scores in `scores`, where the softmax adds the slices' parts.
fn leave_scores(s: Scores, part: u32) {
    put(s.upper, part);
    if (KEYS > 16u) {
        put(s.upper_far, part + 4u);
    }
    if (BAND > 16u) {
        put(s.lower, part + 16u * SCORES);
    }
}

fn put(m: Sums, to: u32) {
    let sums = m;
    let at = to;
    let pitch = SCORES;
    coopStoreT(sums, &scores[at], pitch);
}

// The weights of the band's queries, as the softmax left them.
fn weights(band0: u32) -> Weights {
    var p: Weights;
    p.upper = coopLoadT<Left>(&ps[band0 * PITCH], PITCH);
    if (KEYS > 16u) {
        p.upper_far = coopLoadT<Left>(&ps[band0 * PITCH + 4u], PITCH); //~ rounded: off by one
    }
    if (BAND > 16u) {
        p.lower = coopLoadT<Left>(&ps[(band0 + 16u) * PITCH], PITCH);
    }
    return p;
}

// Adds the weighted values of 16 columns.
fn add(sums: Column, p: Weights, column: u32) -> Column {
    var o = sums;
    let near = coopLoadT<coop_mat16x16<f16, B>>(&kv[column >> 1u][0], WIDE);
    o.upper = coopMultiplyAdd(p.upper, near, o.upper);
    if (BAND > 16u) {
        o.lower = coopMultiplyAdd(p.lower, near, o.lower);
    }
    if (KEYS > 16u) { //~ seen: comparison, guard dropped
        let far = coopLoadT<coop_mat16x16<f16, B>>(&kv[(16u * WIDE + column) >> 1u][0], WIDE);
        o.upper = coopMultiplyAdd(p.upper_far, far, o.upper);
    }
    return o;
}

// Scales every query's sums by its own factor, through workgroup memory.
fn shrunk(sums: Column, part: u32, band0: u32, lane: u32) -> Column {
    var o = sums;
    leave_sums(o, part);
    let at = part + (lane >> 1u) * SCORES + 2u * (lane & 1u);
    let factor = shrinks[band0 + (lane >> 1u)];
    scores[at] *= factor;
    scores[at + 1u] *= factor;
    if (BAND > 16u) {
        let lower_factor = shrinks[band0 + 16u + (lane >> 1u)];
        scores[at + 16u * SCORES] *= lower_factor;
        scores[at + 16u * SCORES + 1u] *= lower_factor;
    }
    subgroupBarrier();
    o.upper = coopLoadT<Sums>(&scores[part], SCORES);
    if (BAND > 16u) {
        o.lower = coopLoadT<Sums>(&scores[part + 16u * SCORES], SCORES);
    }
    subgroupBarrier();
    return o;
}

// Leaves 16 columns of sums in the subgroup's part of `scores`.
fn leave_sums(o: Column, part: u32) {
    put(o.upper, part);
    if (BAND > 16u) {
        put(o.lower, part + 16u * SCORES);
    }
    subgroupBarrier();
}

// Writes 16 columns of the results. `at`: this lane's indices in y for an upper and a lower query.
// `within`: whether these queries exist.
fn finish(o: Column, part: u32, band0: u32, lane: u32, at: vec2<u32>, within: vec2<bool>) {
    leave_sums(o, part);
    let source = part + (lane >> 1u) * SCORES + 2u * (lane & 1u);
    if (within.x) {
        let factor = shrinks[band0 + (lane >> 1u)];
        y[at.x] = scores[source] * factor;
        y[at.x + 1u] = scores[source + 1u] * factor;
    }
    if (BAND > 16u && within.y) {
        let factor = shrinks[band0 + 16u + (lane >> 1u)];
        y[at.y] = scores[source + 16u * SCORES] * factor;
        y[at.y + 1u] = scores[source + 16u * SCORES + 1u] * factor;
    }
    subgroupBarrier();
}
