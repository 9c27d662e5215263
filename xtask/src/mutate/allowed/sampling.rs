//! Of what chooses ids.

use super::{Allowed, SPARE, TWICE, WHOLE, allow};

const LISTED: &str = "the list only spares a walk of the whole row, which finds the same";
const NOISE: &str = "a draw hangs on the order of the noises, seldom on the size of a middling one";
const ALL_KEPT: &str = "a filter that keeps everything changes nothing";
const BETWEEN: &str = "a sum that only equals what is wanted is within rounding of either outcome, and not among the cases";

const ARGMAX: &str = "shaders/argmax.wgsl";
const PENALIZE: &str = "shaders/penalize.wgsl";
const SAMPLE: &str = "shaders/sample.wgsl";
const SAMPLE_SCAN: &str = "shaders/sample_scan.wgsl";
const LARGEST: &str = "shaders/shared/largest.wgsl";
const STRIPS: &str = "shaders/shared/strips.wgsl";
const THREEFRY: &str = "shaders/shared/threefry.wgsl";

pub(super) const ALLOWED: &[Allowed] = &[
    allow(ARGMAX, "off by one", "if (lid == 0u)", TWICE),
    allow(ARGMAX, "guard dropped", "if (lid == 0u)", TWICE),
    allow(PENALIZE, "comparison", "logit > 0.0", "zero stays zero on either way"),
    allow(SAMPLE, "", "list_from_strips", LISTED),
    allow(SAMPLE, "", "by_rank", LISTED),
    allow(SAMPLE, "", "let list = Items(", LISTED),
    allow(SAMPLE, "", "reached == NAN_KEY", LISTED),
    allow(SAMPLE, "off by one", "if (lid == 0u)", TWICE),
    allow(SAMPLE, "guard dropped", "if (lid == 0u)", TWICE),
    allow(SAMPLE, "", "next", "tests/sampling.rs follows the drawn id into the next step"),
    allow(SAMPLE, "", "if (s.top_k > 0u || s.top_p < 1.0)", ALL_KEPT),
    allow(SAMPLE, "comparison", "if (row >= params.rows)", WHOLE),
    allow(SAMPLE, "guard dropped", "if (row >= params.rows)", WHOLE),
    allow(SAMPLE, "comparison", "for (var i = lid; i < params.strips", "past the end the last strip is read again, and counts nothing"),
    allow(SAMPLE, "", "let higher =", "sums are relative to any size, as long as none overflows"),
    allow(SAMPLE, "off by one", "NAN_KEY + 1u", "no number has a key between NaN's and that of minus infinity"),
    allow(SAMPLE, "comparison", "i < count && found[i].x >= least", "past the list lie zeros, which are below the least"),
    allow(SAMPLE, "", "sum += exp(key_value(found[i].x) - top)", LISTED),
    allow(SAMPLE, "comparison", "sum >= wanted", BETWEEN),
    allow(SAMPLE, "off by one", "var key = 0u", "the search ends at the same key, wherever below all keys it starts"),
    allow(SAMPLE, "comparison", "if (here >= max(key, least))", "elements that equal the least decide only that it stays the least"),
    allow(SAMPLE, "comparison", "let lowest =", "the logarithm of one is zero, and that of zero below every logit"),
    allow(SAMPLE, "component", "var chosen =", "the largest logit is always kept, so the start never stands"),
    allow(SAMPLE_SCAN, "", "if (row >= params.rows)", WHOLE),
    allow(SAMPLE_SCAN, "", "if (lid % LANES < half)", SPARE),
    allow(SAMPLE_SCAN, "", "if (slice == 0u && lid == 0u)", TWICE),
    allow(SAMPLE_SCAN, "off by one", "vec4<u32>(positions[t], sequences[t], 0u, 0u)", "the two words behind are spare"),
    allow(LARGEST, "", "strip", LISTED),
    allow(LARGEST, "", "rank", LISTED),
    allow(LARGEST, "", "best_scratch", LISTED),
    allow(LARGEST, "", "if (n > WG)", LISTED),
    allow(LARGEST, "", "if (i + WG < n)", LISTED),
    allow(LARGEST, "", "found_bound", LISTED),
    allow(LARGEST, "", "(slot < ROOM)", LISTED),
    allow(LARGEST, "", "(count <= ROOM)", LISTED),
    allow(LARGEST, "", "for (var i = 0u; i < WG; i++)", LISTED),
    allow(LARGEST, "", "for (var i = lid; i < n; i += 2u * WG)", LISTED),
    allow(LARGEST, "off by one", "if (lid == 0u)", TWICE),
    allow(LARGEST, "guard dropped", "if (lid == 0u)", TWICE),
    allow(LARGEST, "barrier dropped", "workgroupBarrier();", "lavapipe runs a workgroup's subgroups one after another"),
    allow(STRIPS, "", "shift", LISTED),
    allow(STRIPS, "", "lid < 16u", "bins past the last are nobody's, and counts do not depend on who clears them"),
    allow(STRIPS, "comparison", "for (var s = lid; s < params.strips;", LISTED),
    allow(STRIPS, "comparison", "for (var d = lid + 1u; d < 16u;", "the bin past the last counts nothing"),
    allow(STRIPS, "comparison", "if (above < rank &&", LISTED),
    allow(STRIPS, "component", "rank -= reached.y;", LISTED),
    allow(STRIPS, "", "let bound = max(", LISTED),
    allow(STRIPS, "", "if (lid == 0u)", TWICE),
    allow(STRIPS, "off by one", "atomicStore(&found_slots, 0u);", "a slot that holds the lowest key, last in order and below every bound"),
    allow(STRIPS, "comparison", "first < params.strips", "a turn without strips lists nothing"),
    allow(STRIPS, "barrier dropped", "workgroupBarrier();", "lavapipe runs a workgroup's subgroups one after another"),
    allow(THREEFRY, "sign", "* unit;", NOISE),
    allow(THREEFRY, "", "let tail =", NOISE),
    allow(THREEFRY, "", "let near_one =", NOISE),
    allow(THREEFRY, "comparison", "h >= 0x800000u", "both forms agree where they meet"),
];
