//! Of norms, packing, activations and reductions.

use super::{ALIKE, Allowed, CLAMPED, DROPPED, EIGHT, EMPTY, EXIT, LATER, SPARE, TWICE, UNSEEN, allow};

const HALVES: &str = "both arms are one half at zero";
const HALVES_WRITE: &str = "both halves of a block's threads write the same words";
const IDLE: &str = "threads that have none of the row make nothing that is kept";
const WHOLE: &str = "rows that fill every thread twice are read and stored alike either way";
const AGAIN: &str = "the callers synchronise before they reduce again";

const EMBED: &str = "shaders/embed.wgsl";
const GLU_PACK_F16: &str = "shaders/glu_pack_f16.wgsl";
const GLU_PACK_Q8: &str = "shaders/glu_pack_q8.wgsl";
const LEVEL_F16: &str = "shaders/level_f16.wgsl";
const MUL_SIGMOID: &str = "shaders/mul_sigmoid.wgsl";
const NORM_ADD: &str = "shaders/norm_add.wgsl";
const NORM_PACK_F16: &str = "shaders/norm_pack_f16.wgsl";
const NORM_PACK_Q8: &str = "shaders/norm_pack_q8.wgsl";
const PACK_F16: &str = "shaders/pack_f16.wgsl";
const PACK_Q8: &str = "shaders/pack_q8.wgsl";
const GELU: &str = "shaders/shared/gelu.wgsl";
const PACK_Q8_QUAD: &str = "shaders/shared/pack_q8.wgsl";
const PACK_Q8_SUBGROUP: &str = "shaders/shared/pack_q8_subgroup.wgsl";
const Q8_BLOCK: &str = "shaders/shared/q8_block.wgsl";
const Q8_STORE: &str = "shaders/shared/q8_store.wgsl";
const ACTS_NORM: &str = "shaders/shared/acts_norm.wgsl";
const ACTS_NORM_ADD: &str = "shaders/shared/acts_norm_add.wgsl";
const ACTS_NORM_ADD_EIGHTS: &str = "shaders/shared/acts_norm_add_eights.wgsl";
const ACTS_NORM_ADD_QUADS: &str = "shaders/shared/acts_norm_add_quads.wgsl";
const ACTS_OWN: &str = "shaders/shared/acts_own.wgsl";
const REDUCE: &str = "shaders/shared/reduce.wgsl";
const REDUCE_SUBGROUP: &str = "shaders/shared/reduce_subgroup.wgsl";
const SILU4: &str = "shaders/shared/silu4.wgsl";
const SQUARE_SUMS: &str = "shaders/shared/square_sums.wgsl";
const SILU: &str = "shaders/silu.wgsl";
const SOFTCAP: &str = "shaders/softcap.wgsl";
const SWIGLU: &str = "shaders/swiglu.wgsl";

pub(super) const ALLOWED: &[Allowed] = &[
    allow(EMBED, "comparison", "if (r >= params.row_count)", LATER),
    allow(GLU_PACK_Q8, "sign", "let at = min(number, params.rows * quads - 1u);", DROPPED),
    allow(GLU_PACK_Q8, "sign", "min(row, params.rows - 1u)", DROPPED),
    allow(LEVEL_F16, "off by one", "if (lid == 0u)", TWICE),
    allow(LEVEL_F16, "guard dropped", "if (lid == 0u)", TWICE),
    allow(LEVEL_F16, "guard dropped", "if (top != scale)", "what is divided by the row's scale already is multiplied by one"),
    allow(MUL_SIGMOID, "comparison", "g >= 0.0", HALVES),
    allow(NORM_ADD, "sign", "quads - 1u", DROPPED),
    allow(NORM_ADD, "comparison", "for (var quad = 4u * WG + lid; quad < quads;", "quads past the row count as zeros"),
    allow(NORM_ADD, "comparison", "WG) {", EXIT),
    allow(NORM_ADD, "guard dropped", "WG) {", EXIT),
    allow(GLU_PACK_F16, "comparison", "if (quads > ", CLAMPED),
    allow(GLU_PACK_F16, "guard dropped", "if (quads > ", CLAMPED),
    allow(GLU_PACK_F16, "comparison", "quad < quads; quad += WG", CLAMPED),
    allow(GLU_PACK_F16, "off by one", "if (lid == 0u)", TWICE),
    allow(GLU_PACK_F16, "guard dropped", "if (lid == 0u)", TWICE),
    allow(NORM_PACK_F16, "guard dropped", "    if (params.has_add == 1u) {", "a sum that there is not goes to a spare that nobody reads"),
    allow(NORM_PACK_F16, "", "let full =", WHOLE),
    allow(NORM_PACK_F16, "", "quads - 1u), lid", DROPPED),
    allow(NORM_PACK_F16, "comparison", "if (quads > 2u * WG)", WHOLE),
    allow(NORM_PACK_F16, "guard dropped", "if (quads > 2u * WG)", WHOLE),
    allow(NORM_PACK_F16, "guard dropped", "if (has_near) {", CLAMPED),
    allow(NORM_PACK_F16, "guard dropped", "if (has_far) {", CLAMPED),
    allow(NORM_PACK_F16, "off by one", "if (lid == 0u)", TWICE),
    allow(NORM_PACK_F16, "guard dropped", "if (lid == 0u)", TWICE),
    allow(NORM_PACK_Q8, "sign", "let at = min(number, params.rows * quads - 1u);", DROPPED),
    allow(NORM_PACK_Q8, "guard dropped", "if (inside)", CLAMPED),
    allow(PACK_F16, "off by one", "if (lid == 0u)", TWICE),
    allow(PACK_F16, "guard dropped", "if (lid == 0u)", TWICE),
    allow(PACK_Q8, "sign", "params.rows * quads - 1u", DROPPED),
    allow(GELU, "comparison", "x >= 0.0", HALVES),
    allow(PACK_Q8_QUAD, "barrier dropped", "workgroupBarrier();", EIGHT),
    allow(PACK_Q8_SUBGROUP, "off by one", "subgroupShuffleXor(largest, 2u)", ALIKE),
    allow(PACK_Q8_SUBGROUP, "off by one", "subgroupShuffleXor(largest, 4u)", ALIKE),
    allow(PACK_Q8_SUBGROUP, "off by one", "subgroupShuffleXor(sums, 2u)", ALIKE),
    allow(PACK_Q8_SUBGROUP, "off by one", "subgroupShuffleXor(sums, 4u)", ALIKE),
    allow(PACK_Q8_SUBGROUP, "", "let upper =", "only threads of the lower half write sums"),
    allow(Q8_BLOCK, "component", "scale.x == 0.0", "the scale and its inverse are zero together"),
    allow(Q8_STORE, "mask", "let word = lid & 7u;", HALVES_WRITE),
    allow(ACTS_NORM, "comparison", "start < quads;", EMPTY),
    allow(ACTS_NORM, "sign", "let at = min(quad, quads - 1u);", DROPPED),
    allow(ACTS_NORM_ADD, "off by one", "lanes_add(share, 32u, lid)", "half of 33 is half of 32"),
    allow(ACTS_NORM_ADD, "", "if (lid % 32u == 0u)", TWICE),
    allow(ACTS_NORM_ADD_EIGHTS, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(ACTS_NORM_ADD_EIGHTS, "sign", "eights - 1u", DROPPED),
    allow(ACTS_NORM_ADD_EIGHTS, "", "lanes_busy((lid & ~31u) < eights)", IDLE),
    allow(ACTS_NORM_ADD_EIGHTS, "guard dropped", "if (busy)", IDLE),
    allow(ACTS_NORM_ADD_EIGHTS, "off by one", "lanes_other(largest, 2u, lid)", ALIKE),
    allow(ACTS_NORM_ADD_EIGHTS, "off by one", "lanes_other2(sums, 2u, lid)", ALIKE),
    allow(ACTS_NORM_ADD_EIGHTS, "comparison", "start < eights;", EMPTY),
    allow(ACTS_NORM_ADD_EIGHTS, "", "if (eights > WG)", EMPTY),
    allow(ACTS_NORM_ADD_EIGHTS, "off by one", "select(0u, 2u * lid, inside)", DROPPED),
    allow(ACTS_NORM_ADD_QUADS, "comparison", "start < quads;", EMPTY),
    allow(ACTS_NORM_ADD_QUADS, "off by one", "select(0u, quad, inside)", DROPPED),
    allow(ACTS_NORM_ADD_QUADS, "barrier dropped", "    workgroupBarrier();", UNSEEN),
    allow(ACTS_NORM_ADD_QUADS, "off by one", "first == 0u; first = 1u", "any number but zero ends the loop"),
    allow(
        ACTS_OWN,
        "",
        "if (word < 4u)",
        "the fourth word, to which the others are clamped, is the share of a norm, which nobody asks for here",
    ),
    allow(ACTS_OWN, "mask", "let word = lid & 7u;", HALVES_WRITE),
    allow(REDUCE, "comparison", "if (lid < half)", SPARE),
    allow(REDUCE, "guard dropped", "if (lid < half)", SPARE),
    allow(REDUCE, "barrier dropped", "    workgroupBarrier();", AGAIN),
    allow(REDUCE_SUBGROUP, "", "if ((lid & (width - 1u)) == 0u)", "every lane holds the sum of its subgroup"),
    allow(REDUCE_SUBGROUP, "comparison", "i <", "the scratch past the subgroups is zero, as workgroup memory starts"),
    allow(REDUCE_SUBGROUP, "barrier dropped", "    workgroupBarrier();", AGAIN),
    allow(SILU4, "comparison", "g >= vec4<f32>(0.0)", HALVES),
    allow(SQUARE_SUMS, "comparison", "if (sums.y > 1e-12)", "both forms agree where they meet"),
    allow(SQUARE_SUMS, "sign", "+ eps * SMALLER * SMALLER", "eps times 2^-128 is nothing beside such sums"),
    allow(SILU, "comparison", "v >= 0.0", HALVES),
    allow(SOFTCAP, "comparison", "abs(z) < 0.25", "both forms agree where they meet"),
    allow(SWIGLU, "comparison", "g >= 0.0", HALVES),
];
