//! Of products with weights, their formats and experts.

use super::{Allowed, CLAMPED, DROPPED, EXIT, LATER, RACES, allow};

const BYTES: &str = "weights of ordinary size have no such scale; tests/format_parity.rs reads every byte";
const SHARED_OUT: &str = "any stretches in order that cover the slots will do, one thread's all too";
const UNOWNED: &str = "rows of other parts and past the end make results that are not stored";

const GROUP_EXPERTS: &str = "shaders/group_experts.wgsl";
const MATMUL: &str = "shaders/matmul.wgsl";
const MATMUL_EXPERTS: &str = "shaders/matmul_experts.wgsl";
const MATMUL_VEC: &str = "shaders/matmul_vec.wgsl";
const MATMUL_VEC_EXPERTS: &str = "shaders/matmul_vec_experts.wgsl";
const MATMUL_VEC_GLU: &str = "shaders/matmul_vec_glu.wgsl";
const MATMUL_VEC_GROUP: &str = "shaders/matmul_vec_group.wgsl";
const MATMUL_VEC_NORM: &str = "shaders/matmul_vec_norm.wgsl";
const MATMUL_VEC_Q8: &str = "shaders/matmul_vec_q8.wgsl";
const NORM_MATMUL_VEC: &str = "shaders/norm_matmul_vec.wgsl";
const MXFP4: &str = "shaders/quant/mxfp4.wgsl";
const NVFP4: &str = "shaders/quant/nvfp4.wgsl";
const FIFTH: &str = "shaders/quant/units/fifth.wgsl";
const Q4_K_UNITS: &str = "shaders/quant/units/q4_k.wgsl";
const TQ1_0: &str = "shaders/quant/tq1_0.wgsl";
const ROUTE: &str = "shaders/route.wgsl";

pub(super) const ALLOWED: &[Allowed] = &[
    allow(GROUP_EXPERTS, "comparison", "if (expert >= params.experts)", "a workgroup past the last expert finds no slot of its own"),
    allow(GROUP_EXPERTS, "guard dropped", "if (expert >= params.experts)", "a workgroup past the last expert finds no slot of its own"),
    allow(GROUP_EXPERTS, "comparison", "for (var e = lid; e < params.experts;", "one count more is cleared, which nobody reads"),
    allow(GROUP_EXPERTS, "", "let stretch =", SHARED_OUT),
    allow(GROUP_EXPERTS, "sign", "let to =", SHARED_OUT),
    allow(MATMUL, "sign", "params.rows - 1u", "rows past the end make results that are not stored"),
    allow(MATMUL, "sign", "params.row_count - 1u", "rows past the end make results that are not stored"),
    allow(MATMUL, "comparison", "for (var k0 = 0u; k0 < k;", "columns past the end are staged as zeros"),
    allow(MATMUL_EXPERTS, "", "if (count == 0u || (local >= params.row_count", EXIT),
    allow(MATMUL_EXPERTS, "", "            if (row < SLOTS) {", "what threads past the slots load is not staged"),
    allow(MATMUL_EXPERTS, "comparison", "for (var i = 0u; i < 4u; i++)", "the slot's owner writes it again, later in lavapipe's order"),
    allow(MATMUL_EXPERTS, "comparison", "return local + r < params.row_count", LATER),
    allow(MATMUL_EXPERTS, "comparison", "for (var k0 = 0u; k0 < k;", "columns past the end are staged as zeros"),
    allow(MATMUL_EXPERTS, "sign", "let x_row =", "slots past the tile's make results that are not stored"),
    allow(MATMUL_EXPERTS, "off by one", "(select(0u, local + row", UNOWNED),
    allow(MATMUL_VEC, "comparison", "if (r >= params.row_count)", "the store has a guard of its own"),
    allow(MATMUL_VEC, "guard dropped", "if (r >= params.row_count)", "the store has a guard of its own"),
    allow(MATMUL_VEC, "sign", "let last = params.row_count - 1u", "rows past the end make results that are not stored"),
    allow(
        MATMUL_VEC,
        "comparison",
        "for (var i = lid; i < (k + 3u) / 4u;",
        "activations past the end read as zero where buffer access is robust",
    ),
    allow(MATMUL_VEC, "comparison", "if (lid < ROWS &&", RACES),
    allow(MATMUL_VEC_EXPERTS, "comparison", "(local < vec4<u32>(params.row_count))", LATER),
    allow(MATMUL_VEC_EXPERTS, "guard dropped", "if (!any(owned))", EXIT),
    allow(MATMUL_VEC_EXPERTS, "off by one", "select(vec4<u32>(0u), local, owned)", UNOWNED),
    allow(
        MATMUL_VEC_EXPERTS,
        "comparison",
        "if (lid < ROWS && owned[lid])",
        "an index past the last row is clamped to it, and stores its result twice",
    ),
    allow(
        MATMUL_VEC_GLU,
        "barrier dropped",
        "    workgroupBarrier();",
        "lavapipe's compiler moves the reading of the block behind the barrier with which the packing begins",
    ),
    allow(MATMUL_VEC_GLU, "off by one", "block[min(lid, 7u)]", DROPPED),
    allow(MATMUL_VEC_GROUP, "", "if (number >= before_c + (params.rows_c", EXIT),
    allow(MATMUL_VEC_GROUP, "sign", "params.rows_a - 1u", UNOWNED),
    allow(MATMUL_VEC_GROUP, "sign", "params.rows_b - 1u", UNOWNED),
    allow(MATMUL_VEC_GROUP, "sign", "params.rows_c - 1u", UNOWNED),
    allow(MATMUL_VEC_NORM, "off by one", "min(lid, 7u)", DROPPED),
    allow(MATMUL_VEC_NORM, "guard dropped", "if (inside)", CLAMPED),
    allow(MATMUL_VEC_Q8, "comparison", "if (r >= params.row_count)", EXIT),
    allow(MATMUL_VEC_Q8, "guard dropped", "if (r >= params.row_count)", EXIT),
    allow(MATMUL_VEC_GROUP, "", "if (lid != 0u && lid != QUARTER)", RACES),
    allow(MATMUL_VEC_Q8, "comparison", "if (lid < ROWS &&", RACES),
    allow(MATMUL_VEC_Q8, "", "if (PARTS > 1u)", "a single part's sum passes through workgroup memory unchanged"),
    allow(MATMUL_VEC_Q8, "off by one", "if (lid % LANES == 0u)", "every thread of a part has the part's sum"),
    allow(MATMUL_VEC_Q8, "guard dropped", "if (lid % LANES == 0u)", "every thread of a part has the part's sum"),
    allow(MATMUL_VEC_Q8, "sign", "params.row_count - 1u", UNOWNED),
    allow(NORM_MATMUL_VEC, "", "if (number >= before_c + (params.rows_c", EXIT),
    allow(NORM_MATMUL_VEC, "sign", "params.rows_a - 1u", UNOWNED),
    allow(NORM_MATMUL_VEC, "sign", "params.rows_b - 1u", UNOWNED),
    allow(NORM_MATMUL_VEC, "sign", "params.rows_c - 1u", UNOWNED),
    allow(NORM_MATMUL_VEC, "", "if (lane >= 2u)", "two subgroups write the same place, and it is chance whose value stays"),
    allow(MXFP4, "mask", "& 255u", BYTES),
    allow(MXFP4, "off by one", "254u", BYTES),
    allow(NVFP4, "mask", "& 255u", "the sign bit of a scale is never set"),
    allow(NVFP4, "mask", "(scale & 127u)", BYTES),
    allow(NVFP4, "off by one", "scale == 127u", BYTES),
    allow(TQ1_0, "sign", "n = q - 60u;", "only its lowest two bits are used, and 60 is a multiple of 4"),
    allow(TQ1_0, "mask", "0x1b090301u", "the powers of three are below 128"),
    allow(ROUTE, "comparison", "j < EACH", "EACH times WG is the most experts that there are"),
    allow(FIFTH, "sign", "vec4<u32>(0u, 1u, 2u, 3u) + first", "shifts by 16 more and by 16 less are the same, of the 32 that there are"),
    allow(Q4_K_UNITS, "off by one", "let none = vec4<u32>(0u);", "weights of four bits read no fifth"),
];
