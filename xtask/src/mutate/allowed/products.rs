//! Of products with weights, their formats and experts.

use super::{ALIKE, APART, Allowed, CLAMPED, DROPPED, EMPTY, EVEN, EXIT, LATER, RACES, TWICE, UNOWNED, UNSEEN, allow};

const BYTES: &str = "weights of ordinary size have no such scale; tests/format_parity.rs reads every byte";
const SHARED_OUT: &str = "any stretches in order that cover the slots will do, one thread's all too";
const QUARTERS: &str = "every thread of a quarter holds the same sum, so any of them may store it, or all";
const ONE_SCALE: &str = "formats that are alike have their scale and their least twice";
const JOINED: &str = "lanes that differ in lower bits have sums of the same row, which are added afterwards, so that either's will do";
const IN_STEP: &str = "rows past the last are read in another's stead, and their results are not stored";
const TURNS: &str = "shifts by 16 more and by 16 less are the same, of the 32 that there are";
const EACH_HALF: &str = "in either order every half is met once";
const AHEAD: &str = "what comes next is loaded twice";
const BAND: &str = "there are one, two or four bands; what is computed of more is not stored";

const UNITS: &str = "columns are loaded by whole units, down to which their number is rounded";

const COOP_AHEAD: &str = "shaders/shared/coop_ahead.wgsl";
const COOP_END: &str = "shaders/shared/coop_end.wgsl";
const COOP_END_QUADS: &str = "shaders/shared/coop_end_quads.wgsl";
const COOP_QUADS: &str = "shaders/shared/coop_quads.wgsl";
const FEW_ROWS: &str = "shaders/shared/few_rows.wgsl";
const FEW_STEPS_2: &str = "shaders/shared/few_steps_2.wgsl";
const FEW_STEPS_4: &str = "shaders/shared/few_steps_4.wgsl";
const FEW_STEPS_8: &str = "shaders/shared/few_steps_8.wgsl";
const GLU_MATMUL_VEC: &str = "shaders/glu_matmul_vec.wgsl";
const GROUP_EXPERTS: &str = "shaders/group_experts.wgsl";
const MATMUL: &str = "shaders/matmul.wgsl";
const MATMUL_COOP: &str = "shaders/matmul_coop.wgsl";
const MATMUL_COOP_GLU: &str = "shaders/matmul_coop_glu.wgsl";
const MATMUL_EXPERTS: &str = "shaders/matmul_experts.wgsl";
const FEW_TILES: &str = "shaders/shared/few_tiles.wgsl";
const FEW_TILE: &str = "shaders/quant/units/few_tile.wgsl";
const MATMUL_FEW_Q8: &str = "shaders/matmul_few_q8.wgsl";
const MATMUL_FEW_Q8_GLU: &str = "shaders/matmul_few_q8_glu.wgsl";
const MATMUL_FEW_Q8_GROUP: &str = "shaders/matmul_few_q8_group.wgsl";
const MATMUL_VEC: &str = "shaders/matmul_vec.wgsl";
const MATMUL_VEC_EXPERTS: &str = "shaders/matmul_vec_experts.wgsl";
const MATMUL_VEC_GLU: &str = "shaders/matmul_vec_glu.wgsl";
const MATMUL_VEC_GROUP: &str = "shaders/matmul_vec_group.wgsl";
const MATMUL_VEC_NORM: &str = "shaders/matmul_vec_norm.wgsl";
const MATMUL_VEC_Q8: &str = "shaders/matmul_vec_q8.wgsl";
const NORM_ADD_MATMUL_VEC: &str = "shaders/norm_add_matmul_vec.wgsl";
const NORM_ADD_MATMUL_VEC_GLU: &str = "shaders/norm_add_matmul_vec_glu.wgsl";
const NORM_PACK_MATMUL_VEC: &str = "shaders/norm_pack_matmul_vec.wgsl";
const NORM_PACK_MATMUL_VEC_GLU: &str = "shaders/norm_pack_matmul_vec_glu.wgsl";
const MERGE_MATMUL_VEC: &str = "shaders/merge_matmul_vec.wgsl";
const MXFP4: &str = "shaders/quant/mxfp4.wgsl";
const NVFP4: &str = "shaders/quant/nvfp4.wgsl";
const FIFTH: &str = "shaders/quant/units/fifth.wgsl";
const Q6_K_ROWS: &str = "shaders/quant/units/q6_k_rows.wgsl";
const Q8_0_STEP: &str = "shaders/quant/units/q8_0_step.wgsl";
const Q4_K_UNITS: &str = "shaders/quant/units/q4_k.wgsl";
const TQ1_0: &str = "shaders/quant/tq1_0.wgsl";
const ROUTE: &str = "shaders/route.wgsl";

pub(super) const ALLOWED: &[Allowed] = &[
    allow(COOP_AHEAD, "sign", "params.row_count - 1u", UNOWNED),
    allow(COOP_END, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(COOP_END_QUADS, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(COOP_QUADS, "sign", "params.row_count - 1u", UNOWNED),
    allow(FEW_ROWS, "component", "return fma(w.scale.x", ONE_SCALE),
    allow(FEW_ROWS, "off by one", "0.0, first == 0u) +", "what a workgroup has not written is zero when it begins"),
    allow(FEW_ROWS, "", "return (lid & 31u) < 4u * STEPS", RACES),
    allow(FEW_ROWS, "guard dropped", "if (held_first(", RACES),
    allow(FEW_ROWS, "off by one", "held_order(near, lid) == 0u)", "lanes of every order hold the same share"),
    allow(FEW_STEPS_2, "off by one", "2u * rows_bit(near)", ALIKE),
    allow(FEW_STEPS_2, "", "act_load(t + min(1u, last)", "a plan that takes rows in twos has two"),
    allow(FEW_STEPS_4, "", "act_load(t + min(3u, last)", IN_STEP),
    allow(FEW_STEPS_4, "off by one", "2u * rows_bit(near)", ALIKE),
    allow(FEW_STEPS_4, "off by one", "lanes_other2(select(four.zw", JOINED),
    allow(FEW_STEPS_8, "off by one", "2u * rows_bit(near)", ALIKE),
    allow(FEW_STEPS_8, "", "return one + lanes_other(", APART),
    allow(FEW_STEPS_8, "off by one", "lanes_other4(select(eight[1]", JOINED),
    allow(FEW_STEPS_8, "off by one", "lanes_other2(select(four.zw", JOINED),
    allow(GLU_MATMUL_VEC, "comparison", "if (number * rows >= params.n)", EXIT),
    allow(GLU_MATMUL_VEC, "guard dropped", "if (number * rows >= params.n)", EXIT),
    allow(GLU_MATMUL_VEC, "comparison", "for (var start = 0u; start < quads;", EMPTY),
    allow(GLU_MATMUL_VEC, "sign", "let at = min(start + lid, quads - 1u);", DROPPED),
    allow(GLU_MATMUL_VEC, "sign", "let unit = min(lane, units - 1u);", DROPPED),
    allow(GLU_MATMUL_VEC, "sign", "params.n - 1u", UNOWNED),
    allow(GLU_MATMUL_VEC, "comparison", "if (lane < 2u &&", RACES),
    allow(GLU_MATMUL_VEC, "off by one", "if (lane < 2u &&", RACES),
    allow(GLU_MATMUL_VEC, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(GROUP_EXPERTS, "comparison", "if (expert >= params.experts)", "a workgroup past the last expert finds no slot of its own"),
    allow(GROUP_EXPERTS, "guard dropped", "if (expert >= params.experts)", "a workgroup past the last expert finds no slot of its own"),
    allow(GROUP_EXPERTS, "comparison", "for (var e = lid; e < params.experts;", "one count more is cleared, which nobody reads"),
    allow(GROUP_EXPERTS, "", "let stretch =", SHARED_OUT),
    allow(GROUP_EXPERTS, "sign", "let to =", SHARED_OUT),
    allow(MATMUL, "sign", "params.rows - 1u", "rows past the end make results that are not stored"),
    allow(MATMUL, "sign", "params.row_count - 1u", "rows past the end make results that are not stored"),
    allow(MATMUL, "comparison", "for (var k0 = 0u; k0 < k;", "columns past the end are staged as zeros"),
    allow(MATMUL_COOP, "sign", "params.rows - 1u", UNOWNED),
    allow(MATMUL_COOP, "off by one", "var ahead = ahead_load(", UNITS),
    allow(MATMUL_COOP, "off by one", "for (var k0 = 0u;", UNITS),
    allow(MATMUL_COOP, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(MATMUL_COOP, "comparison", "for (var j = 0u; j < 8u; j++) {", CLAMPED),
    allow(MATMUL_COOP, "sign", "let next = min(k0 + DEPTH, k - DEPTH);", DROPPED),
    allow(MATMUL_COOP, "off by one", "for (var q = 0u;", EVEN),
    allow(MATMUL_COOP_GLU, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(MATMUL_COOP_GLU, "off by one", "subgroupShuffleXor(most, 2u)", ALIKE),
    allow(MATMUL_COOP_GLU, "", "if ((lane & 3u) == 0u)", TWICE),
    allow(MATMUL_COOP_GLU, "sign", "params.rows - 1u", UNOWNED),
    allow(MATMUL_COOP_GLU, "off by one", "var ahead = ahead_load(", UNITS),
    allow(MATMUL_COOP_GLU, "off by one", "for (var k0 = 0u;", UNITS),
    allow(MATMUL_COOP_GLU, "comparison", "for (var j = 0u; j < 8u; j++) {", CLAMPED),
    allow(MATMUL_COOP_GLU, "sign", "let next = min(k0 + DEPTH, k - DEPTH);", DROPPED),
    allow(MATMUL_COOP_GLU, "off by one", "for (var q = 0u;", EVEN),
    allow(MATMUL_EXPERTS, "", "if (count == 0u || (local >= params.row_count", EXIT),
    allow(MATMUL_EXPERTS, "", "            if (row < SLOTS) {", "what threads past the slots load is not staged"),
    allow(MATMUL_EXPERTS, "comparison", "for (var i = 0u; i < 4u; i++)", "the slot's owner writes it again, later in lavapipe's order"),
    allow(MATMUL_EXPERTS, "comparison", "return local + r < params.row_count", LATER),
    allow(MATMUL_EXPERTS, "comparison", "for (var k0 = 0u; k0 < k;", "columns past the end are staged as zeros"),
    allow(MATMUL_EXPERTS, "sign", "let x_row =", "slots past the tile's make results that are not stored"),
    allow(MATMUL_EXPERTS, "off by one", "(select(0u, local + row", UNOWNED),
    allow(FEW_TILES, "comparison", "for (var i = lid; i < 256u;", LATER),
    allow(FEW_TILES, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(FEW_TILE, "sign", "rows_of(which) - 1u", UNOWNED),
    allow(FEW_TILES, "", "if (BANDS >", BAND),
    allow(FEW_TILES, "sign", "BANDS - 1u", BAND),
    allow(FEW_TILE, "off by one", "return Slabs(band_of", "a band past the last is clamped to it"),
    allow(
        FEW_TILE,
        "",
        "        if (GROUPS > 1u)",
        "there are one or two groups; what is computed of a second that there is not is not stored",
    ),
    allow(FEW_TILE, "guard dropped", "if (!AHEAD) {", AHEAD),
    allow(FEW_TILE, "guard dropped", "if (AHEAD) {", AHEAD),
    allow(FEW_TILE, "", "var once =", "however often, there is nothing written to wait for"),
    allow(MATMUL_FEW_Q8, "comparison", "if (r0 >= params.row_count)", EXIT),
    allow(MATMUL_FEW_Q8, "sign", "params.row_count - 1u;", UNOWNED),
    allow(MATMUL_FEW_Q8, "comparison", "first < blocks;", EMPTY),
    allow(MATMUL_FEW_Q8, "guard dropped", "if (pairs)", AHEAD),
    allow(MATMUL_FEW_Q8, "guard dropped", "if (!pairs)", APART),
    allow(MATMUL_FEW_Q8, "off by one", "let step =", APART),
    allow(MATMUL_FEW_Q8, "sign", "var cd =", DROPPED),
    allow(MATMUL_FEW_Q8, "", "min(lane, blocks - 1u), lid);", APART),
    allow(MATMUL_FEW_Q8, "mask", "select(0u, lid & 1u, ", APART),
    allow(MATMUL_FEW_Q8, "", "let there =", APART),
    allow(MATMUL_FEW_Q8_GLU, "sign", "min(32u, params.n - r0)", "there are always 32 rows, as they are whole blocks"),
    allow(MATMUL_FEW_Q8_GLU, "sign", "let final_row = params.n - 1u;", UNOWNED),
    allow(MATMUL_FEW_Q8_GLU, "sign", "let next = r0 + min(r + 4u, count - 4u);", UNOWNED),
    allow(MATMUL_FEW_Q8_GLU, "comparison", "first < blocks;", EMPTY),
    allow(MATMUL_FEW_Q8_GLU, "mask", "select(0u, lid & 1u, ", APART),
    allow(MATMUL_FEW_Q8_GLU, "comparison", "i < max(8u * STEPS, WG);", EMPTY),
    allow(
        MATMUL_FEW_Q8_GLU,
        "minimum",
        "i < max(8u * STEPS, WG);",
        "threads past the last quad store nothing; they are there to meet barriers",
    ),
    allow(MATMUL_FEW_Q8_GLU, "sign", "min(i >> 3u, STEPS - 1u)", DROPPED),
    allow(MATMUL_FEW_Q8_GROUP, "sign", "let final_row = rows_w - 1u;", UNOWNED),
    allow(MATMUL_FEW_Q8_GROUP, "comparison", "first < blocks;", EMPTY),
    allow(MATMUL_FEW_Q8_GROUP, "guard dropped", "if (pairs)", AHEAD),
    allow(MATMUL_FEW_Q8_GROUP, "guard dropped", "if (!pairs)", APART),
    allow(MATMUL_FEW_Q8_GROUP, "off by one", "let step =", APART),
    allow(MATMUL_FEW_Q8_GROUP, "sign", "var cd =", DROPPED),
    allow(MATMUL_FEW_Q8_GROUP, "", "min(lane, blocks - 1u), lid);", APART),
    allow(MATMUL_FEW_Q8_GROUP, "mask", "select(0u, lid & 1u, ", APART),
    allow(MATMUL_FEW_Q8_GROUP, "", "let there =", APART),
    allow(
        MATMUL_FEW_Q8_GROUP,
        "comparison",
        "for (var r = 0u; r < count;",
        "rows past the tile are nobody's where it is smaller than MOST; cases of MOST are those of matmul_few_q8.wgsl, which need fewer columns",
    ),
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
    allow(MATMUL_VEC_GLU, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(MATMUL_VEC_GLU, "off by one", "block[min(lid, 7u)]", DROPPED),
    allow(MATMUL_VEC_GROUP, "", "if (number >= before_c + (params.rows_c", EXIT),
    allow(MATMUL_VEC_GROUP, "sign", "params.rows_a - 1u", UNOWNED),
    allow(MATMUL_VEC_GROUP, "sign", "params.rows_b - 1u", UNOWNED),
    allow(MATMUL_VEC_GROUP, "sign", "params.rows_c - 1u", UNOWNED),
    allow(MATMUL_VEC_NORM, "", "let inside = lid < 8u;", RACES),
    allow(MATMUL_VEC_NORM, "off by one", "min(lid, 7u)", DROPPED),
    allow(MATMUL_VEC_NORM, "guard dropped", "if (inside)", CLAMPED),
    allow(MATMUL_VEC_NORM, "", "if (lane % QUARTER == 0u)", QUARTERS),
    allow(MATMUL_VEC_NORM, "component", "let v = vec4<f32>(low.xy,", "the third and the fourth are one sum"),
    allow(MATMUL_VEC_Q8, "comparison", "if (r >= params.row_count)", EXIT),
    allow(MATMUL_VEC_Q8, "guard dropped", "if (r >= params.row_count)", EXIT),
    allow(MATMUL_VEC_GROUP, "", "if (lid != 0u && lid != QUARTER)", RACES),
    allow(MATMUL_VEC_Q8, "comparison", "let inside = lid < ROWS &&", RACES),
    allow(MATMUL_VEC_Q8, "off by one", "if (lid % QUARTER == 0u)", QUARTERS),
    allow(MATMUL_VEC_Q8, "guard dropped", "if (lid % QUARTER == 0u)", QUARTERS),
    allow(MATMUL_VEC_Q8, "sign", "params.row_count - 1u", UNOWNED),
    allow(MERGE_MATMUL_VEC, "component", "let highest = max(most,", "a maximum that is too high by a little cancels"),
    allow(MERGE_MATMUL_VEC, "", "if (number * ROWS >= params.n)", EXIT),
    allow(MERGE_MATMUL_VEC, "comparison", "for (var start = 0u; start < quads;", EMPTY),
    allow(MERGE_MATMUL_VEC, "sign", "joined(min(quad, quads - 1u))", DROPPED),
    allow(MERGE_MATMUL_VEC, "sign", "params.n - 1u", UNOWNED),
    allow(MERGE_MATMUL_VEC, "component", "w_step(row, row, k, j).x", "the two are products of one row"),
    allow(MERGE_MATMUL_VEC, "off by one", "if (lane == 0u && r < params.n)", TWICE),
    allow(NORM_ADD_MATMUL_VEC, "", "if (number >= before_c + (params.rows_c", EXIT),
    allow(NORM_ADD_MATMUL_VEC, "sign", "params.rows_a - 1u", UNOWNED),
    allow(NORM_ADD_MATMUL_VEC, "sign", "params.rows_b - 1u", UNOWNED),
    allow(NORM_ADD_MATMUL_VEC, "sign", "params.rows_c - 1u", UNOWNED),
    allow(NORM_ADD_MATMUL_VEC, "", "if (lane >= 2u)", RACES),
    allow(NORM_ADD_MATMUL_VEC_GLU, "comparison", "if (number * ROWS >= params.n)", EXIT),
    allow(NORM_ADD_MATMUL_VEC_GLU, "guard dropped", "if (number * ROWS >= params.n)", EXIT),
    allow(NORM_ADD_MATMUL_VEC_GLU, "sign", "params.n - 1u", UNOWNED),
    allow(NORM_ADD_MATMUL_VEC_GLU, "component", "sums += vec3<f32>(gated.x, up_step(", "a step takes two rows, which are one here"),
    allow(NORM_ADD_MATMUL_VEC_GLU, "off by one", "if (lane == 0u)", TWICE),
    allow(NORM_ADD_MATMUL_VEC_GLU, "guard dropped", "if (lane == 0u)", TWICE),
    allow(NORM_ADD_MATMUL_VEC_GLU, "comparison", "lid < QUADS &&", RACES),
    allow(NORM_ADD_MATMUL_VEC_GLU, "sign", "QUADS - 1u", DROPPED),
    allow(NORM_PACK_MATMUL_VEC, "", "if (number >= before_c + (params.rows_c", EXIT),
    allow(NORM_PACK_MATMUL_VEC, "sign", "params.rows_a - 1u", UNOWNED),
    allow(NORM_PACK_MATMUL_VEC, "sign", "params.rows_b - 1u", UNOWNED),
    allow(NORM_PACK_MATMUL_VEC, "sign", "params.rows_c - 1u", UNOWNED),
    allow(NORM_PACK_MATMUL_VEC, "off by one", "if (lane > 0u)", TWICE),
    allow(NORM_PACK_MATMUL_VEC, "guard dropped", "if (lane > 0u)", TWICE),
    allow(NORM_PACK_MATMUL_VEC_GLU, "sign", "let j = min(lane, units - 1u);", DROPPED),
    allow(NORM_PACK_MATMUL_VEC_GLU, "off by one", "if (lane == 0u || lane == QUARTER)", QUARTERS),
    allow(NORM_PACK_MATMUL_VEC_GLU, "off by one", "block[min(lid, 7u)]", DROPPED),
    allow(MXFP4, "mask", "& 255u", BYTES),
    allow(MXFP4, "off by one", "254u", BYTES),
    allow(NVFP4, "mask", "& 255u", "the sign bit of a scale is never set"),
    allow(NVFP4, "mask", "(scale & 127u)", BYTES),
    allow(NVFP4, "off by one", "scale == 127u", BYTES),
    allow(TQ1_0, "sign", "n = q - 60u;", "only its lowest two bits are used, and 60 is a multiple of 4"),
    allow(TQ1_0, "mask", "0x1b090301u", "the powers of three are below 128"),
    allow(ROUTE, "comparison", "j < EACH", "EACH times WG is the most experts that there are"),
    allow(FIFTH, "sign", "vec4<u32>(0u, 1u, 2u, 3u) + first", TURNS),
    allow(Q6_K_ROWS, "sign", "let up = 24u - 16u", TURNS),
    allow(Q8_0_STEP, "off by one", "let together = (k & 255u) == 0u;", EACH_HALF),
    allow(Q4_K_UNITS, "off by one", "let none = vec4<u32>(0u);", "weights of four bits read no fifth"),
];
