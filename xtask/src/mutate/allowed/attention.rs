//! Of attention, its states and the heads that go there.

use super::{ALIKE, APART, Allowed, CLAMPED, DROPPED, EIGHT, EMPTY, ENDLESS, EVEN, EXIT, RACES, SCALED, TWICE, UNSEEN, WHOLE, allow};

const SURPLUS: &str = "what threads and heads too many compute is not read";
const RAISED: &str = "a score too many can only raise the running maximum, which cancels";
const LOWEST: &str = "the score past the end is the lowest, whose weight is zero";
const NO_KEYS: &str = "a tile without keys adds nothing";
const FEWER_HEADS: &str = "there are two or four heads; what is computed of others is not read";
const ONCE: &str = "any number but zero ends the loop";
const NUMBERS: &str = "the row that is about to be written, and those behind it, hold numbers, which count nothing";
const NO_NORM: &str = "weights of a norm that there is not are loaded, and not used";
const LAST: &str = "an index past the last is clamped to it, and the largest is the same with one twice";
const ONE_NUMBER: &str = "the two are one number";
const ONE_ROW: &str = "there is one row, so that more sets than there are will do";
const NO_PART: &str = "a part without keys is not joined";
const SOONER: &str = "a reference may be raised at any time: what it scales cancels";
const HALF: &str = "half of 33 is half of 32";
const HEAD_COUNTS: &str = "there are one, two or four heads";
const OWN: &str = "which threads count this row's own value is free";
const TURNED: &str = "a row as far on as the state is long is its first";
const UNSTORED: &str = "scores past the last key are not stored";
const BEFORE: &str = "before the first tile the sums are zero";
const COLUMNS: &str = "a slice has 64 or 128 columns; what is computed of others is not read";
const NO_QUERY: &str = "keys that no query sees weigh nothing";
const BANDS: &str = "there are 16 or 32 queries and keys; what is computed of others is not read";
const ONE: &str = "sums whose reference is as it was are scaled by one, and before the first keys they are zero";
const PADDING: &str = "there are one, two or four; what is past the end is clamped to padding, which is zero or not read";
const SECOND: &str = "what the second group of a neighbourhood gathers is not read";

const ATTENTION: &str = "shaders/attention.wgsl";
const ATTENTION_BATCH: &str = "shaders/attention_batch.wgsl";
const ATTENTION_COOP: &str = "shaders/attention_coop.wgsl";
const ATTENTION_DEEP_LONG: &str = "shaders/attention_deep_long.wgsl";
const ATTENTION_DEEP_RAW: &str = "shaders/attention_deep_raw.wgsl";
const ATTENTION_MERGE: &str = "shaders/attention_merge.wgsl";
const ATTENTION_SHORT: &str = "shaders/attention_short.wgsl";
const ATTENTION_SHORT_128: &str = "shaders/attention_short_128.wgsl";
const ATTENTION_SHORT_BATCH: &str = "shaders/attention_short_batch.wgsl";
const ATTENTION_SHORT_PARTS: &str = "shaders/attention_short_parts.wgsl";
const ATTENTION_SHORT_WHOLE: &str = "shaders/attention_short_whole.wgsl";
const ATTENTION_SPLIT: &str = "shaders/attention_split.wgsl";
const BATCH_HEADS: &str = "shaders/shared/batch_heads.wgsl";
const COOP_BANDS: &str = "shaders/shared/coop_bands.wgsl";
const COOP_KEYS: &str = "shaders/shared/coop_keys.wgsl";
const COOP_SCORES: &str = "shaders/shared/coop_scores.wgsl";
const DEEP_KEYS: &str = "shaders/shared/deep_keys.wgsl";
const SLICE_8: &str = "shaders/shared/slice_8.wgsl";
const SLICE_16: &str = "shaders/shared/slice_16.wgsl";
const PART_WEIGHTS: &str = "shaders/shared/part_weights.wgsl";
const PART_WEIGHTS_WIDE: &str = "shaders/shared/part_weights_wide.wgsl";
const SIXTEEN: &str = "shaders/shared/sixteen.wgsl";
const SIXTEEN_SHARE: &str = "shaders/shared/sixteen_share.wgsl";
const SIXTEEN_WIDE: &str = "shaders/shared/sixteen_wide.wgsl";
const WHOLE_256: &str = "shaders/shared/whole_256.wgsl";
const WHOLE_512: &str = "shaders/shared/whole_512.wgsl";
const KV_Q8_0: &str = "shaders/kv/q8_0_store.wgsl";
const KV_APPEND: &str = "shaders/kv_append.wgsl";
const NORM_ROPE_APPEND: &str = "shaders/norm_rope_append.wgsl";
const NORM_ROPE_HEADS: &str = "shaders/norm_rope_heads.wgsl";
const HEAD_MOST: &str = "shaders/shared/head_most.wgsl";
const LANES_SUBGROUP: &str = "shaders/shared/lanes_subgroup.wgsl";
const MERGED_F32: &str = "shaders/shared/merged_f32.wgsl";

pub(super) const ALLOWED: &[Allowed] = &[
    allow(ATTENTION, "comparison", "if (number >= params.rows * params.heads)", WHOLE),
    allow(ATTENTION, "guard dropped", "if (number >= params.rows * params.heads)", WHOLE),
    allow(ATTENTION, "comparison", "if (lid < quads) {", "quads past the head are loaded, and never read"),
    allow(ATTENTION, "guard dropped", "if (lid < quads) {", "quads past the head are loaded, and never read"),
    allow(ATTENTION, "comparison", "for (var tile = start; tile < end;", NO_KEYS),
    allow(ATTENTION, "comparison", "if (tile + lid < end)", RAISED),
    allow(ATTENTION, "guard dropped", "if (tile + lid < end)", RAISED),
    allow(ATTENTION, "comparison", "let p = select(", LOWEST),
    allow(ATTENTION, "comparison", "if (group < groups)", "the threads past the last group make sums that nobody reads"),
    allow(ATTENTION, "guard dropped", "if (group < groups)", "the threads past the last group make sums that nobody reads"),
    allow(
        ATTENTION,
        "barrier dropped",
        "        workgroupBarrier();",
        "the next tile's reduction has a barrier before the weights are written again",
    ),
    allow(
        LANES_SUBGROUP,
        "off by one",
        "apart < params.exchange; apart *= 2u",
        "of eight lanes, exchanges 2 and 6 apart bring the same ones together as 2 and 4 apart do",
    ),
    allow(
        LANES_SUBGROUP,
        "comparison",
        "apart < params.exchange; apart *= 2u",
        "an exchange more counts weights and values once more alike, and leaves maxima as they are",
    ),
    allow(ATTENTION_BATCH, "comparison", "if (HEADS >", SURPLUS),
    allow(ATTENTION_BATCH, "guard dropped", "if (HEADS >", SURPLUS),
    allow(ATTENTION_BATCH, "off by one", "if (HEADS > 2u)", HEAD_COUNTS),
    allow(ATTENTION_BATCH, "", "if (t >= params.rows)", WHOLE),
    allow(ATTENTION_BATCH, "", "let last = base + max(here, 1u) - 1u;", NUMBERS),
    allow(ATTENTION_BATCH, "off by one", "let counted =", OWN),
    allow(ATTENTION_BATCH, "comparison", "tile < here;", NO_KEYS),
    allow(ATTENTION_BATCH, "", "if (sixteen_any(inside && s > most + RAISE))", SOONER),
    allow(ATTENTION_BATCH, "off by one", "sixteen_of(shrink,", ALIKE),
    allow(ATTENTION_BATCH, "off by one", "sixteen_of(most,", ALIKE),
    allow(ATTENTION_BATCH, "off by one", "sixteen_of(total,", ALIKE),
    allow(ATTENTION_BATCH, "comparison", "for (var g = 1u; g < SUBS;", LAST),
    allow(ATTENTION_BATCH, "off by one", "if (first_head == 0u && lid == 0u)", TWICE),
    allow(ATTENTION_BATCH, "guard dropped", "if (first_head == 0u && lid == 0u)", TWICE),
    allow(ATTENTION_COOP, "sign", "params.rows - 1u) * params.heads", DROPPED),
    allow(ATTENTION_COOP, "off by one", "let region =", "there is room for regions that are further apart"),
    allow(ATTENTION_COOP, "", "if (SLICE > 64u)", COLUMNS),
    allow(ATTENTION_COOP, "off by one", "var to_key =", "every row sees a key"),
    allow(ATTENTION_COOP, "off by one", "s = score(s, q", EVEN),
    allow(ATTENTION_COOP, "off by one", "= add(o", EVEN),
    allow(ATTENTION_COOP, "", "let count = min(tokens,", NO_QUERY),
    allow(ATTENTION_COOP, "comparison", "first < count;) {", EMPTY),
    allow(ATTENTION_COOP, "sign", "while (past < count &&", "below count there are rows"),
    allow(ATTENTION_COOP, "comparison", "while (past < count &&", NO_QUERY),
    allow(ATTENTION_COOP, "sign", "let next = positions[t0 + past] + 1u;", NO_QUERY),
    allow(
        ATTENTION_COOP,
        "off by one",
        "from_key = min(from_key,",
        "a walk begins with a whole tile, and keys that no query sees weigh nothing",
    ),
    allow(ATTENTION_COOP, "sign", "end + params.causal);", ENDLESS),
    allow(ATTENTION_COOP, "", "let last = max(to_key, 1u) - 1u;", NUMBERS),
    allow(ATTENTION_COOP, "minimum", "first = max(past, first + 1u);", "keys that all are counted twice weigh as much"),
    allow(ATTENTION_COOP, "sign", "last - min(key_start, last)", NUMBERS),
    allow(ATTENTION_COOP, "comparison", "key0 < to_key;", NO_KEYS),
    allow(ATTENTION_COOP, "", "if (lid < ROWS / BAND) {", CLAMPED),
    allow(ATTENTION_COOP, "off by one", "raised[lid] = 0u;", ONE),
    allow(ATTENTION_COOP, "sign", "let values = load_v(base, slot, last - key0", NUMBERS),
    allow(ATTENTION_COOP, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(ATTENTION_COOP, "comparison", "slot >= params.capacity", TURNED),
    allow(ATTENTION_COOP, "sign", "ahead = load_k(base, slot, max(last, key0", NO_QUERY),
    allow(ATTENTION_DEEP_LONG, "product", "let sets =", ONE_ROW),
    allow(ATTENTION_DEEP_LONG, "", "if (number >= sets * params.splits)", WHOLE),
    allow(ATTENTION_DEEP_LONG, "", "if (part.x >= part.y)", NO_PART),
    allow(ATTENTION_DEEP_LONG, "sign", "let place = Place(", DROPPED),
    allow(ATTENTION_DEEP_LONG, "comparison", "tile < part.y;", NO_KEYS),
    allow(ATTENTION_DEEP_LONG, "comparison", "turn < keys;", NO_KEYS),
    allow(ATTENTION_DEEP_LONG, "", "if (sixteen_any(turn + sub < keys))", UNSTORED),
    allow(ATTENTION_DEEP_LONG, "", "if (key < keys)", RAISED),
    allow(ATTENTION_DEEP_LONG, "mask", "(lane & 1u) == 0u", TWICE),
    allow(ATTENTION_DEEP_LONG, "off by one", "(lane & 1u) == 0u", TWICE),
    allow(ATTENTION_DEEP_LONG, "guard dropped", "if ((lane & 1u) == 0u)", TWICE),
    allow(ATTENTION_DEEP_LONG, "guard dropped", "if (slot < 4u", RACES),
    allow(ATTENTION_DEEP_LONG, "", "if (lid < 4u)", RACES),
    allow(ATTENTION_DEEP_LONG, "guard dropped", "if (lane < 4u)", RACES),
    allow(ATTENTION_DEEP_LONG, "guard dropped", "if (lid >= HALF)", RACES),
    allow(ATTENTION_DEEP_LONG, "comparison", "if (tile > part.x)", BEFORE),
    allow(ATTENTION_DEEP_LONG, "guard dropped", "if (tile > part.x)", BEFORE),
    allow(ATTENTION_DEEP_LONG, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(ATTENTION_DEEP_RAW, "off by one", "lanes_add(dot(small, small), 32u, lid)", HALF),
    allow(ATTENTION_DEEP_RAW, "off by one", "select(HEADS, HEADS + 2u, own)", SURPLUS),
    allow(ATTENTION_DEEP_RAW, "guard dropped", "if (normed) {", NO_NORM),
    allow(ATTENTION_DEEP_RAW, "comparison", "first < count;", EMPTY),
    allow(ATTENTION_DEEP_RAW, "guard dropped", "} else if (own) {", DROPPED),
    allow(ATTENTION_DEEP_RAW, "guard dropped", "if (k_state_scaled)", SCALED),
    allow(ATTENTION_DEEP_RAW, "off by one", "most = max(most, lanes_other(most, 2u", ALIKE),
    allow(ATTENTION_DEEP_RAW, "off by one", "most = max(most, lanes_other(most, 4u", ALIKE),
    allow(ATTENTION_DEEP_RAW, "", "if (h < count) {", SURPLUS),
    allow(ATTENTION_DEEP_RAW, "guard dropped", "if (stores) {", TWICE),
    allow(ATTENTION_MERGE, "comparison", "if (t >= params.rows)", WHOLE),
    allow(ATTENTION_MERGE, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(ATTENTION_MERGE, "off by one", "max(params.splits, 2u)", "of two parts or three, half of the threads have every quad of a head"),
    allow(ATTENTION_MERGE, "sign", "let quad = min(place % chunks * chunk", DROPPED),
    allow(ATTENTION_MERGE, "sign", "let last = params.splits - 1u;", DROPPED),
    allow(ATTENTION_MERGE, "comparison", "if (lid % beside < chunk)", APART),
    allow(ATTENTION_MERGE, "guard dropped", "if (lid % beside < chunk)", APART),
    allow(ATTENTION_MERGE, "guard dropped", "if (parts_done(chunk, lid))", EXIT),
    allow(ATTENTION_MERGE, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(ATTENTION_MERGE, "minimum", "lid < min(chunk, quads)", TWICE),
    allow(ATTENTION_SHORT, "", "    if (part < 3u) {", SURPLUS),
    allow(ATTENTION_SHORT, "guard dropped", "} else if (part == 2u && params.append == 1u) {", SURPLUS),
    allow(ATTENTION_SHORT, "barrier dropped", "        workgroupBarrier();", EIGHT),
    allow(ATTENTION_SHORT, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(ATTENTION_SHORT, "guard dropped", "if (k_state_scaled)", SCALED),
    allow(ATTENTION_SHORT, "guard dropped", "        if (stores) {", TWICE),
    allow(ATTENTION_SHORT, "", "if (n >= params.q_heads)", WHOLE),
    allow(ATTENTION_SHORT, "", "let place = Place(base,", DROPPED),
    allow(ATTENTION_SHORT, "comparison", "most = select(LOWEST, s, lid < lanes);", RAISED),
    allow(ATTENTION_SHORT, "component", "let s = scores(vec4<f32>(slice_dot(query, finished(", "the four are one number"),
    allow(
        ATTENTION_SHORT,
        "comparison",
        "total = select(0.0, 1.0, lid < lanes);",
        "beside a maximum that is the lowest of all, it weighs nothing",
    ),
    allow(ATTENTION_SHORT, "comparison", "tile < end;", NO_KEYS),
    allow(ATTENTION_SHORT, "", "if (tile + 4u * groups < end) {", "what is loaded behind the last tile is not looked at"),
    allow(ATTENTION_SHORT, "component", "let near_most =", "the four are one number"),
    allow(ATTENTION_SHORT, "component", "let near_total =", "the four are one number"),
    allow(ATTENTION_SHORT, "comparison", "slice_gather(acc * factor, lid % near < lanes,", SECOND),
    allow(ATTENTION_SHORT, "sign", "let quad = min(lid, quads - 1u);", DROPPED),
    allow(ATTENTION_SHORT_128, "", "if (n >= params.q_heads)", WHOLE),
    allow(ATTENTION_SHORT_128, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(ATTENTION_SHORT_128, "off by one", "lanes_other(most, 2u, lid)", ALIKE),
    allow(ATTENTION_SHORT_128, "comparison", "tile < max(here, 1u);", NO_KEYS),
    allow(ATTENTION_SHORT_128, "off by one", "first == 0u; first = 1u", ONCE),
    allow(ATTENTION_SHORT_128, "guard dropped", "if (k_state_scaled)", SCALED),
    allow(ATTENTION_SHORT_128, "off by one", "if (sub == 0u && n ==", TWICE),
    allow(ATTENTION_SHORT_128, "guard dropped", "if (sub == 0u && n ==", TWICE),
    allow(ATTENTION_SHORT_128, "", "if (here > 0u)", NUMBERS),
    allow(
        ATTENTION_SHORT_128,
        "off by one",
        "[sub / 4u][sub % 4u]",
        "which of four places has a subgroup's is free, and an index past them is clamped to the last",
    ),
    allow(ATTENTION_SHORT_128, "comparison", "for (var g = 1u; g < SUBS / 4u;", LAST),
    allow(ATTENTION_SHORT_128, "", "if (lid < 32u)", SURPLUS),
    allow(ATTENTION_SHORT_128, "guard dropped", "    if (params.normed == 1u) {", NO_NORM),
    allow(ATTENTION_SHORT_128, "", "let last = base + max(here, 1u) - 1u;", DROPPED),
    allow(ATTENTION_SHORT_BATCH, "off by one", "lanes_other(most, 2u, lid)", ALIKE),
    allow(ATTENTION_SHORT_BATCH, "", "if (t >= params.rows)", WHOLE),
    allow(ATTENTION_SHORT_BATCH, "guard dropped", "    if (params.normed == 1u) {", NO_NORM),
    allow(ATTENTION_SHORT_BATCH, "", "let last = base + max(here, 1u) - 1u;", NUMBERS),
    allow(ATTENTION_SHORT_BATCH, "comparison", "tile < max(here, 1u);", NO_KEYS),
    allow(ATTENTION_SHORT_BATCH, "off by one", "first == 0u; first = 1u", ONCE),
    allow(ATTENTION_SHORT_BATCH, "guard dropped", "if (k_state_scaled)", SCALED),
    allow(ATTENTION_SHORT_BATCH, "comparison", "if (lid < 32u &&", TWICE),
    allow(ATTENTION_SHORT_BATCH, "off by one", "if (lid < 32u &&", TWICE),
    allow(ATTENTION_SHORT_BATCH, "guard dropped", "if (lid < 32u &&", TWICE),
    allow(ATTENTION_SHORT_BATCH, "", "if (HEADS > 1u)", SURPLUS),
    allow(ATTENTION_SHORT_BATCH, "", "if (here > 0u)", NUMBERS),
    allow(ATTENTION_SHORT_BATCH, "comparison", "for (var g = 1u; g < SUBS;", LAST),
    allow(ATTENTION_SHORT_BATCH, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(ATTENTION_SHORT_BATCH, "", "if (head < HEADS)", SURPLUS),
    allow(ATTENTION_SHORT_PARTS, "", "if (n >= params.q_heads)", WHOLE),
    allow(ATTENTION_SHORT_PARTS, "guard dropped", "if ((params.norms & 1u) == 1u) {", NO_NORM),
    allow(ATTENTION_SHORT_PARTS, "off by one", "let own = params.append == 1u && part == 0u;", "which part counts the own key is free"),
    allow(ATTENTION_SHORT_PARTS, "guard dropped", "} else if (own) {", SURPLUS),
    allow(ATTENTION_SHORT_PARTS, "comparison", "params.window > 0u", "without a window, one less is the largest number"),
    allow(ATTENTION_SHORT_PARTS, "off by one", "params.window > 0u", "a window of one key has no parts"),
    allow(ATTENTION_SHORT_PARTS, "comparison", "slot < back", "a row as far on as the state is long is its first"),
    allow(ATTENTION_SHORT_PARTS, "", "first, max(keys, 1u) - 1u,", NUMBERS),
    allow(ATTENTION_SHORT_PARTS, "guard dropped", "if (k_state_scaled)", SCALED),
    allow(ATTENTION_SHORT_PARTS, "guard dropped", "if (stores) {", TWICE),
    allow(ATTENTION_SHORT_PARTS, "", "if (stores && sub == 1u)", TWICE),
    allow(ATTENTION_SHORT_PARTS, "off by one", "if (lid == 0u)", TWICE),
    allow(ATTENTION_SHORT_PARTS, "off by one", "lanes_other(s, 8u, lid)", ALIKE),
    allow(ATTENTION_SHORT_PARTS, "off by one", "lanes_other(pair, 16u, lid)", ALIKE),
    allow(ATTENTION_SHORT_PARTS, "off by one", "lanes_other(mine, 8u, lid)", ALIKE),
    allow(ATTENTION_SHORT_PARTS, "off by one", "lanes_other2(two, 16u, lid)", ALIKE),
    allow(ATTENTION_SHORT_PARTS, "", "if (lane == 0u)", TWICE),
    allow(ATTENTION_SHORT_PARTS, "comparison", "for (var g = 1u; g < SUBS / 4u;", LAST),
    allow(
        ATTENTION_SHORT_PARTS,
        "guard dropped",
        "    if (own) {",
        "the score is zero where there is no own key, and a higher maximum cancels",
    ),
    allow(ATTENTION_SHORT_PARTS, "off by one", "if (own && sub == 1u)", TWICE),
    allow(ATTENTION_SHORT_PARTS, "comparison", "for (var e = lid; e < HEAD;", "it is the maximum's place, which is written there next"),
    allow(ATTENTION_SHORT_PARTS, "", "if (lid == WG - 1u)", TWICE),
    allow(ATTENTION_SHORT_WHOLE, "off by one", "min(sub, 3u)", "norms have three bits, and there is none above"),
    allow(ATTENTION_SHORT_WHOLE, "guard dropped", "if (k_state_scaled)", SCALED),
    allow(ATTENTION_SHORT_WHOLE, "", "if (n >= params.q_heads)", WHOLE),
    allow(ATTENTION_SHORT_WHOLE, "guard dropped", "} else if (sub == 2u && appends) {", SURPLUS),
    allow(ATTENTION_SHORT_WHOLE, "comparison", "params.window > 0u", "without a window, one less is the largest number"),
    allow(ATTENTION_SHORT_WHOLE, "comparison", "slot < back", TURNED),
    allow(ATTENTION_SHORT_WHOLE, "", "first, max(keys, 1u) - 1u,", NUMBERS),
    allow(ATTENTION_SHORT_WHOLE, "comparison", "tile < keys + KEYS;", NO_KEYS),
    allow(ATTENTION_SHORT_WHOLE, "off by one", "start == 0u; start = 1u", ONCE),
    allow(ATTENTION_SHORT_WHOLE, "off by one", "appends && part == 0u", "which part of a head stores it is free"),
    allow(ATTENTION_SHORT_WHOLE, "off by one", "2u * (lane % 8u);", "the first eight threads alone count this row's own value"),
    allow(ATTENTION_SHORT_WHOLE, "", "if (tile > 0u)", "before the first turn there is no key, and none is inside"),
    allow(ATTENTION_SHORT_WHOLE, "off by one", "lanes_other(s, 8u, lid)", ALIKE),
    allow(ATTENTION_SHORT_WHOLE, "off by one", "lanes_other(pair, 16u, lid)", ALIKE),
    allow(ATTENTION_SHORT_WHOLE, "off by one", "total += lanes_other(total,", ALIKE),
    allow(ATTENTION_SHORT_WHOLE, "comparison", "for (var g = 1u; g < SUBS / 4u;", LAST),
    allow(ATTENTION_SHORT_WHOLE, "guard dropped", "if (quarter == 0u)", RACES),
    allow(ATTENTION_SHORT_WHOLE, "", "if (lid < PART_QUADS)", SURPLUS),
    allow(ATTENTION_SPLIT, "comparison", "if (t >= params.rows)", WHOLE),
    allow(ATTENTION_SPLIT, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(ATTENTION_SPLIT, "", "if (part.x >= part.y)", NO_PART),
    allow(ATTENTION_SPLIT, "sign", "HEADS - 1u)) * quads, lane, lanes)", SURPLUS),
    allow(ATTENTION_SPLIT, "", "slice_of_q((first_head + min(2u, HEADS - 1u)) * quads", SURPLUS),
    allow(ATTENTION_SPLIT, "sign", "let last = part.y - 1u;", DROPPED),
    allow(ATTENTION_SPLIT, "comparison", "tile < part.y;", NO_KEYS),
    allow(ATTENTION_SPLIT, "comparison", "= scores(q,", RAISED),
    allow(ATTENTION_SPLIT, "comparison", "= select(vec4<f32>(0.0), exp(", LOWEST),
    allow(ATTENTION_SPLIT, "off by one", "for (var g = 0u; g < WG; g += near) {", "every lane of a neighbourhood has the same"),
    allow(ATTENTION_SPLIT, "comparison", "slice_gather(acc, lid % near < lanes,", SECOND),
    allow(ATTENTION_SPLIT, "comparison", "if (HEADS >", SURPLUS),
    allow(ATTENTION_SPLIT, "guard dropped", "if (HEADS >", SURPLUS),
    allow(ATTENTION_SPLIT, "off by one", "if (lid == 0u && params.splits > 1u)", TWICE),
    allow(ATTENTION_SPLIT, "guard dropped", "if (lid == 0u && params.splits > 1u)", TWICE),
    allow(ATTENTION_SPLIT, "off by one", "if (HEADS > 2u)", HEAD_COUNTS),
    allow(DEEP_KEYS, "product", "let sets = params.heads / HEADS;", ONE_ROW),
    allow(DEEP_KEYS, "", "if (number >= sets * params.splits)", WHOLE),
    allow(DEEP_KEYS, "", "if (part.x >= part.y)", NO_PART),
    allow(DEEP_KEYS, "", "sequences[0] * params.capacity, turns,", DROPPED),
    allow(DEEP_KEYS, "", "let queries = Heads(", FEWER_HEADS),
    allow(DEEP_KEYS, "comparison", "if (tile + TILE >= past)", NO_KEYS),
    allow(DEEP_KEYS, "comparison", "turn < count;", NO_KEYS),
    allow(DEEP_KEYS, "", "if (sixteen_any(turn + group < count))", UNSTORED),
    allow(DEEP_KEYS, "", "if (key < count)", RAISED),
    allow(DEEP_KEYS, "", "if (lid < 4u)", RACES),
    allow(DEEP_KEYS, "comparison", "key < ((count + 4u", EMPTY),
    allow(DEEP_KEYS, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(DEEP_KEYS, "", "if (tile > part.x)", BEFORE),
    allow(DEEP_KEYS, "", "if (lid % 32u < 4u)", TWICE),
    allow(DEEP_KEYS, "off by one", "lid % 32u]), 32u, lid)", HALF),
    allow(DEEP_KEYS, "off by one", "if (lid % 32u == 0u)", TWICE),
    allow(DEEP_KEYS, "guard dropped", "if (lid % 32u == 0u)", TWICE),
    allow(DEEP_KEYS, "off by one", "if (own && group == 0u)", OWN),
    allow(DEEP_KEYS, "comparison", "if (HEADS >", FEWER_HEADS),
    allow(DEEP_KEYS, "guard dropped", "if (HEADS >", FEWER_HEADS),
    allow(DEEP_KEYS, "off by one", "if (HEADS > 2u)", FEWER_HEADS),
    allow(BATCH_HEADS, "comparison", "first < HEADS + 2u;", EMPTY),
    allow(BATCH_HEADS, "guard dropped", "if (params.normed == 1u)", NO_NORM),
    allow(BATCH_HEADS, "guard dropped", "} else if (h == HEADS + 1u)", DROPPED),
    allow(BATCH_HEADS, "off by one", "lanes_add(dot(small, small), 32u, lid)", HALF),
    allow(BATCH_HEADS, "guard dropped", "if (k_state_scaled)", SCALED),
    allow(BATCH_HEADS, "off by one", "lanes_other(most, 2u", ALIKE),
    allow(BATCH_HEADS, "off by one", "lanes_other(most, 4u", ALIKE),
    allow(BATCH_HEADS, "guard dropped", "if (stores)", TWICE),
    allow(BATCH_HEADS, "", "if (h < HEADS + 2u)", SURPLUS),
    allow(COOP_BANDS, "", "if (BAND > 16u)", BANDS),
    allow(COOP_BANDS, "", "if (KEYS > 16u)", BANDS),
    allow(COOP_BANDS, "off by one", "if (BAND > 16u && within.y)", BANDS),
    allow(COOP_BANDS, "off by one", "both.lower = coopLoadT<Left>(", EVEN),
    allow(COOP_BANDS, "off by one", "p.upper_far = coopLoadT<Left>(", EVEN),
    allow(COOP_KEYS, "", "if (LOADS > 2u)", PADDING),
    allow(COOP_SCORES, "sign", "let t = min(t0 + row / group, params.rows - 1u);", SURPLUS),
    allow(COOP_SCORES, "off by one", "select(0u, ends[t] + params.causal,", SURPLUS),
    allow(COOP_SCORES, "", "if (SLICES > 1u)", PADDING),
    allow(COOP_SCORES, "", "if (SLICES > 2u)", PADDING),
    allow(COOP_SCORES, "off by one", "if (PER_ROW > 2u)", "there are two or four"),
    allow(COOP_SCORES, "off by one", "subgroupShuffleXor(tile_most, 2u)", ALIKE),
    allow(COOP_SCORES, "off by one", "subgroupShuffleXor(total, 2u)", ALIKE),
    allow(COOP_SCORES, "", "let raise =", SOONER),
    allow(COOP_SCORES, "", "if (raise && before.most > LOWEST)", ONE),
    allow(WHOLE_256, "off by one", "lanes_other(most, 2u, lid)", ALIKE),
    allow(WHOLE_256, "component", "most.x", ONE_NUMBER),
    allow(WHOLE_512, "off by one", "lanes_other2(most, 2u, lid)", ALIKE),
    allow(
        WHOLE_512,
        "component",
        "return Slice(k_state_rounded(",
        "a step of a quarter of one key by a neighbouring block's scale is within the bound of its score",
    ),
    allow(KV_Q8_0, "comparison", "for (var j = 0u; j < 8u; j++) {", "an index past the last quad is clamped to it"),
    allow(KV_APPEND, "comparison", "if (t >= params.rows)", WHOLE),
    allow(KV_APPEND, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(KV_APPEND, "off by one", "let keys = (i & 1u) == 0u;", "which half of the threads writes the keys is free"),
    allow(NORM_ROPE_APPEND, "comparison", "if (t >= params.rows)", WHOLE),
    allow(NORM_ROPE_APPEND, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(NORM_ROPE_APPEND, "sign", "let quad = min(own, quads - 1u);", DROPPED),
    allow(NORM_ROPE_APPEND, "guard dropped", "if (k_state_scaled)", SCALED),
    allow(NORM_ROPE_HEADS, "comparison", "if (t >= params.rows)", WHOLE),
    allow(NORM_ROPE_HEADS, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(NORM_ROPE_HEADS, "sign", "let quad = min(own, quads - 1u);", DROPPED),
    allow(NORM_ROPE_HEADS, "guard dropped", "        if (normed) {", "a weight that no norm uses"),
    allow(NORM_ROPE_HEADS, "guard dropped", "if (k_state_scaled)", SCALED),
    allow(HEAD_MOST, "barrier dropped", "workgroupBarrier();", EIGHT),
    allow(MERGED_F32, "guard dropped", "if (inside)", CLAMPED),
    allow(PART_WEIGHTS, "comparison", "for (var s = 0u; s < MOST_SPLITS; s++) {", CLAMPED),
    allow(PART_WEIGHTS, "", "if (lid < MOST_SPLITS)", CLAMPED),
    allow(PART_WEIGHTS, "comparison", "if (lid < 32u)", RACES),
    allow(PART_WEIGHTS_WIDE, "off by one", "for (var apart = 16u;", "an exchange 17 apart and those after it bring the same 32 together"),
    allow(SIXTEEN, "barrier dropped", "workgroupBarrier();", UNSEEN),
    allow(SIXTEEN_SHARE, "barrier dropped", "workgroupBarrier();", UNSEEN),
    allow(SIXTEEN_WIDE, "off by one", "if (lanes > 16u)", "there are 16 or 32 lanes"),
    allow(SLICE_8, "guard dropped", "if (first)", SECOND),
    allow(SLICE_16, "guard dropped", "if (first)", SECOND),
];
