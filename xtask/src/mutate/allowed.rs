//! Faults that no parity case shows, each with the reason.

use super::faults::Fault;

/// Faults in lines that contain `line`, which leave every result as it is.
pub struct Allowed {
    pub file: &'static str,
    /// The kind of fault; empty for every kind.
    pub fault: &'static str,
    pub line: &'static str,
    /// Why it is harmless; read by people.
    #[allow(dead_code)]
    pub why: &'static str,
}

const fn allow(file: &'static str, fault: &'static str, line: &'static str, why: &'static str) -> Allowed {
    Allowed { file, fault, line, why }
}

const TWICE: &str = "every thread holds the same result, so any of them may store it, or all";
const WHOLE: &str = "grids of plans that write states come out whole below 65,535 rows, so there is no workgroup past the end";
const BYTES: &str = "weights of ordinary size have no such scale; tests/format_parity.rs reads every byte";
const LISTED: &str = "the list only spares a walk of the whole row, which finds the same";

const HALVES: &str = "both arms are one half at zero";
const SPARE: &str = "the sums of the upper half are spare; on hardware this races, lavapipe runs lanes in step and subgroups in order";
const AGAIN: &str = "the callers synchronise before they reduce again";
const NOISE: &str = "a draw hangs on the order of the noises, seldom on the size of a middling one";
const ALL_KEPT: &str = "a filter that keeps everything changes nothing";

const SHARED_OUT: &str = "any stretches in order that cover the slots will do, one thread's all too";
const BETWEEN: &str = "a sum that only equals what is wanted is within rounding of either outcome, and not among the cases";
const EXIT: &str = "leaving early spares work: every store has a guard of its own";
const UNOWNED: &str = "rows of other parts and past the end make results that are not stored";
const LATER: &str = "the part that owns the row comes later and writes it again";

const ARGMAX: &str = "shaders/argmax.wgsl";
const ATTENTION: &str = "shaders/attention.wgsl";
const EMBED: &str = "shaders/embed.wgsl";
const GROUP_EXPERTS: &str = "shaders/group_experts.wgsl";
const GELU: &str = "shaders/shared/gelu.wgsl";
const KV_APPEND: &str = "shaders/kv_append.wgsl";
const KV_Q8_0: &str = "shaders/kv/q8_0_store.wgsl";
const LARGEST: &str = "shaders/shared/largest.wgsl";
const MATMUL: &str = "shaders/matmul.wgsl";
const MATMUL_VEC: &str = "shaders/matmul_vec.wgsl";
const MATMUL_EXPERTS: &str = "shaders/matmul_experts.wgsl";
const MATMUL_VEC_EXPERTS: &str = "shaders/matmul_vec_experts.wgsl";
const MUL_SIGMOID: &str = "shaders/mul_sigmoid.wgsl";
const MXFP4: &str = "shaders/quant/mxfp4.wgsl";
const NORM_ROPE_APPEND: &str = "shaders/norm_rope_append.wgsl";
const NVFP4: &str = "shaders/quant/nvfp4.wgsl";
const PENALIZE: &str = "shaders/penalize.wgsl";
const ROUTE: &str = "shaders/route.wgsl";
const PACK_F16: &str = "shaders/pack_f16.wgsl";
const REDUCE: &str = "shaders/shared/reduce.wgsl";
const REDUCE_SUBGROUP: &str = "shaders/shared/reduce_subgroup.wgsl";
const SAMPLE: &str = "shaders/sample.wgsl";
const SAMPLE_SCAN: &str = "shaders/sample_scan.wgsl";
const STRIPS: &str = "shaders/shared/strips.wgsl";
const SILU: &str = "shaders/silu.wgsl";
const SOFTCAP: &str = "shaders/softcap.wgsl";
const SQUARE_SUMS: &str = "shaders/shared/square_sums.wgsl";
const SWIGLU: &str = "shaders/swiglu.wgsl";
const THREEFRY: &str = "shaders/shared/threefry.wgsl";
const TQ1_0: &str = "shaders/quant/tq1_0.wgsl";

/// The list. An entry that names no fault fails the run.
pub const ALLOWED: &[Allowed] = &[
    allow(ARGMAX, "off by one", "if (lid == 0u)", TWICE),
    allow(ARGMAX, "guard dropped", "if (lid == 0u)", TWICE),
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
    allow(EMBED, "comparison", "if (r >= params.row_count)", LATER),
    allow(GELU, "comparison", "x >= 0.0", HALVES),
    allow(GROUP_EXPERTS, "comparison", "if (expert >= params.experts)", "a workgroup past the last expert finds no slot of its own"),
    allow(GROUP_EXPERTS, "guard dropped", "if (expert >= params.experts)", "a workgroup past the last expert finds no slot of its own"),
    allow(GROUP_EXPERTS, "comparison", "for (var e = lid; e < params.experts;", "one count more is cleared, which nobody reads"),
    allow(GROUP_EXPERTS, "", "let stretch =", SHARED_OUT),
    allow(GROUP_EXPERTS, "sign", "let to =", SHARED_OUT),
    allow(KV_APPEND, "comparison", "if (t >= params.rows)", WHOLE),
    allow(KV_APPEND, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(KV_APPEND, "off by one", "let keys = (i & 1u) == 0u;", "which half of the threads writes the keys is free"),
    allow(KV_Q8_0, "comparison", "for (var j = 0u; j < 8u; j++) {", "an index past the last quad is clamped to it"),
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
    allow(MATMUL, "sign", "params.rows - 1u", "rows past the end make results that are not stored"),
    allow(MATMUL, "sign", "params.row_count - 1u", "rows past the end make results that are not stored"),
    allow(MATMUL, "comparison", "for (var k0 = 0u; k0 < k;", "columns past the end are staged as zeros"),
    allow(MATMUL_VEC, "comparison", "if (r >= params.row_count)", "the store has a guard of its own"),
    allow(MATMUL_VEC, "guard dropped", "if (r >= params.row_count)", "the store has a guard of its own"),
    allow(MATMUL_VEC, "sign", "let last = params.row_count - 1u", "rows past the end make results that are not stored"),
    allow(
        MATMUL_VEC,
        "comparison",
        "for (var i = lid; i < (k + 3u) / 4u;",
        "activations past the end read as zero where buffer access is robust",
    ),
    allow(MATMUL_VEC, "comparison", "if (lid < ROWS &&", "the next workgroup writes the row again"),
    allow(MATMUL_EXPERTS, "", "if (count == 0u || (local >= params.row_count", EXIT),
    allow(MATMUL_EXPERTS, "", "            if (row < SLOTS) {", "what threads past the slots load is not staged"),
    allow(MATMUL_EXPERTS, "comparison", "for (var i = 0u; i < 4u; i++)", "the slot's owner writes it again, later in lavapipe's order"),
    allow(MATMUL_EXPERTS, "comparison", "return local + r < params.row_count", LATER),
    allow(MATMUL_EXPERTS, "comparison", "for (var k0 = 0u; k0 < k;", "columns past the end are staged as zeros"),
    allow(MATMUL_EXPERTS, "sign", "let x_row =", "slots past the tile's make results that are not stored"),
    allow(MATMUL_EXPERTS, "off by one", "(select(0u, local + row", UNOWNED),
    allow(MATMUL_VEC_EXPERTS, "comparison", "(local < vec4<u32>(params.row_count))", LATER),
    allow(MATMUL_VEC_EXPERTS, "guard dropped", "if (!any(owned))", EXIT),
    allow(MATMUL_VEC_EXPERTS, "off by one", "select(vec4<u32>(0u), local, owned)", UNOWNED),
    allow(
        MATMUL_VEC_EXPERTS,
        "comparison",
        "if (lid < ROWS && owned[lid])",
        "an index past the last row is clamped to it, and stores its result twice",
    ),
    allow(MUL_SIGMOID, "comparison", "g >= 0.0", HALVES),
    allow(MXFP4, "mask", "& 255u", BYTES),
    allow(MXFP4, "off by one", "254u", BYTES),
    allow(NORM_ROPE_APPEND, "comparison", "if (t >= params.rows)", WHOLE),
    allow(NORM_ROPE_APPEND, "guard dropped", "if (t >= params.rows)", WHOLE),
    allow(NVFP4, "mask", "& 255u", "the sign bit of a scale is never set"),
    allow(NVFP4, "mask", "(scale & 127u)", BYTES),
    allow(NVFP4, "off by one", "scale == 127u", BYTES),
    allow(PENALIZE, "comparison", "logit > 0.0", "zero stays zero on either way"),
    allow(SAMPLE, "", "strip", LISTED),
    allow(SAMPLE, "", "by_rank", LISTED),
    allow(SAMPLE, "", "let list = Items(", LISTED),
    allow(SAMPLE, "", "reached == NAN_KEY", LISTED),
    allow(SAMPLE, "off by one", "if (lid == 0u)", TWICE),
    allow(SAMPLE, "guard dropped", "if (lid == 0u)", TWICE),
    allow(SAMPLE, "", "next", "tests/sampling.rs follows the drawn id into the next step"),
    allow(ROUTE, "comparison", "j < EACH", "EACH times WG is the most experts that there are"),
    allow(PACK_F16, "off by one", "if (lid == 0u)", TWICE),
    allow(PACK_F16, "guard dropped", "if (lid == 0u)", TWICE),
    allow(SAMPLE_SCAN, "", "if (row >= params.rows)", WHOLE),
    allow(SAMPLE_SCAN, "", "if (lid % LANES < half)", SPARE),
    allow(SAMPLE_SCAN, "", "if (slice == 0u && lid == 0u)", TWICE),
    allow(SAMPLE_SCAN, "off by one", "vec4<u32>(positions[t], sequences[t], 0u, 0u)", "the two words behind are spare"),
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
    allow(SILU, "comparison", "v >= 0.0", HALVES),
    allow(SOFTCAP, "comparison", "abs(z) < 0.25", "both forms agree where they meet"),
    allow(SQUARE_SUMS, "comparison", "if (sums.y > 1e-12)", "both forms agree where they meet"),
    allow(SQUARE_SUMS, "sign", "+ eps * SMALLER * SMALLER", "eps times 2^-128 is nothing beside such sums"),
    allow(SWIGLU, "comparison", "g >= 0.0", HALVES),
    allow(REDUCE, "comparison", "if (lid < half)", SPARE),
    allow(REDUCE, "guard dropped", "if (lid < half)", SPARE),
    allow(REDUCE, "barrier dropped", "    workgroupBarrier();", AGAIN),
    allow(REDUCE_SUBGROUP, "off by one", "if (lid % width == 0u)", "every lane holds the sum of its subgroup"),
    allow(REDUCE_SUBGROUP, "guard dropped", "if (lid % width == 0u)", "every lane holds the sum of its subgroup"),
    allow(REDUCE_SUBGROUP, "comparison", "i <", "the scratch past the subgroups is zero, as workgroup memory starts"),
    allow(REDUCE_SUBGROUP, "barrier dropped", "    workgroupBarrier();", AGAIN),
    allow(SAMPLE, "", "if (s.top_k > 0u || s.top_p < 1.0)", ALL_KEPT),
    allow(SAMPLE, "comparison", "if (row >= params.rows)", WHOLE),
    allow(SAMPLE, "guard dropped", "if (row >= params.rows)", WHOLE),
    allow(
        SAMPLE,
        "sign",
        "raw_sum = raw_sum * exp(",
        "a case has no more strips than threads; the whole vocabulary of tests/sampling.rs has",
    ),
    allow(SAMPLE, "off by one", "NAN_KEY + 1u", "no number has a key between NaN's and that of minus infinity"),
    allow(SAMPLE, "comparison", "i < count && found[i].x >= least", "past the list lie zeros, which are below the least"),
    allow(SAMPLE, "", "sum += exp(key_value(found[i].x) - top)", LISTED),
    allow(SAMPLE, "comparison", "sum >= wanted", BETWEEN),
    allow(SAMPLE, "off by one", "var key = 0u", "the search ends at the same key, wherever below all keys it starts"),
    allow(SAMPLE, "comparison", "if (here >= max(key, least))", "elements that equal the least decide only that it stays the least"),
    allow(SAMPLE, "comparison", "let lowest =", "the logarithm of one is zero, and that of zero below every logit"),
    allow(SAMPLE, "component", "var chosen =", "the largest logit is always kept, so the start never stands"),
    allow(THREEFRY, "sign", "* unit;", NOISE),
    allow(THREEFRY, "", "let tail =", NOISE),
    allow(THREEFRY, "", "let near_one =", NOISE),
    allow(THREEFRY, "comparison", "h >= 0x800000u", "both forms agree where they meet"),
    allow(TQ1_0, "sign", "n = q - 60u;", "only its lowest two bits are used, and 60 is a multiple of 4"),
    allow(TQ1_0, "mask", "0x1b090301u", "the powers of three are below 128"),
];

/// The entry that allows this fault.
pub fn find(path: &str, fault: &Fault) -> Option<usize> {
    ALLOWED.iter().position(|a| a.file == path && (a.fault.is_empty() || a.fault == fault.kind) && fault.before.contains(a.line))
}
