//! Of attention, its states and the heads that go there.

use super::{Allowed, CLAMPED, DROPPED, EIGHT, TWICE, WHOLE, allow};

const SURPLUS: &str = "what threads and heads too many compute is not read";
const SECOND: &str = "what the second group of a neighbourhood gathers is not read";

const ATTENTION: &str = "shaders/attention.wgsl";
const ATTENTION_MERGE: &str = "shaders/attention_merge.wgsl";
const ATTENTION_SHORT: &str = "shaders/attention_short.wgsl";
const ATTENTION_SHORT_128: &str = "shaders/attention_short_128.wgsl";
const ATTENTION_SPLIT: &str = "shaders/attention_split.wgsl";
const SLICE_8: &str = "shaders/shared/slice_8.wgsl";
const SLICE_16: &str = "shaders/shared/slice_16.wgsl";
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
    allow(ATTENTION, "comparison", "for (var tile = start; tile < end;", "a tile without keys adds nothing"),
    allow(ATTENTION, "comparison", "if (tile + lid < end)", "a score too many can only raise the running maximum, which cancels"),
    allow(ATTENTION, "guard dropped", "if (tile + lid < end)", "a score too many can only raise the running maximum, which cancels"),
    allow(ATTENTION, "comparison", "let p = select(", "the score past the end is the lowest, whose weight is zero"),
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
    allow(ATTENTION_MERGE, "comparison", "if (t >= params.rows)", WHOLE),
    allow(ATTENTION_MERGE, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(ATTENTION_SHORT, "", "    if (part < 3u) {", SURPLUS),
    allow(ATTENTION_SHORT, "guard dropped", "} else if (part == 2u && params.append == 1u) {", SURPLUS),
    allow(ATTENTION_SHORT, "barrier dropped", "        workgroupBarrier();", EIGHT),
    allow(ATTENTION_SHORT, "guard dropped", "if (k_state_scaled)", "states without scales do not look at the largest"),
    allow(ATTENTION_SHORT_128, "", "if (n >= params.q_heads)", WHOLE),
    allow(
        ATTENTION_SHORT_128,
        "guard dropped",
        "    if (params.normed == 1u) {",
        "weights of a norm that there is not are loaded, and not used",
    ),
    allow(ATTENTION_SHORT_128, "", "let last = base + max(here, 1u) - 1u;", DROPPED),
    allow(ATTENTION_SPLIT, "comparison", "slice_gather(acc, lid % near < lanes,", SECOND),
    allow(ATTENTION_SPLIT, "comparison", "if (HEADS >", SURPLUS),
    allow(ATTENTION_SPLIT, "guard dropped", "if (HEADS >", SURPLUS),
    allow(ATTENTION_SPLIT, "off by one", "if (lid == 0u && params.splits > 1u)", TWICE),
    allow(ATTENTION_SPLIT, "guard dropped", "if (lid == 0u && params.splits > 1u)", TWICE),
    allow(ATTENTION_SPLIT, "off by one", "if (HEADS > 2u)", "there are one, two or four heads"),
    allow(KV_Q8_0, "comparison", "for (var j = 0u; j < 8u; j++) {", "an index past the last quad is clamped to it"),
    allow(KV_APPEND, "comparison", "if (t >= params.rows)", WHOLE),
    allow(KV_APPEND, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(KV_APPEND, "off by one", "let keys = (i & 1u) == 0u;", "which half of the threads writes the keys is free"),
    allow(NORM_ROPE_APPEND, "comparison", "if (t >= params.rows)", WHOLE),
    allow(NORM_ROPE_APPEND, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(NORM_ROPE_APPEND, "sign", "let quad = min(own, quads - 1u);", DROPPED),
    allow(NORM_ROPE_APPEND, "guard dropped", "if (k_state_scaled)", "states without scales do not look at the largest"),
    allow(NORM_ROPE_HEADS, "comparison", "if (t >= params.rows)", WHOLE),
    allow(NORM_ROPE_HEADS, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(NORM_ROPE_HEADS, "sign", "let quad = min(own, quads - 1u);", DROPPED),
    allow(NORM_ROPE_HEADS, "guard dropped", "        if (normed) {", "a weight that no norm uses"),
    allow(NORM_ROPE_HEADS, "guard dropped", "if (k_state_scaled)", "states without scales do not look at the largest"),
    allow(HEAD_MOST, "barrier dropped", "workgroupBarrier();", EIGHT),
    allow(MERGED_F32, "guard dropped", "if (inside)", CLAMPED),
    allow(SLICE_8, "guard dropped", "if (first)", SECOND),
    allow(SLICE_16, "guard dropped", "if (first)", SECOND),
];
