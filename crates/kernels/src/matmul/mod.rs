//! Products with weights, of one row and of many, and the ladder that chooses among their kernels.

/// The one list of the family.
macro_rules! matmul {
    ($then:ident! $($with:tt)*) => {
        $then! { $($with)* matmul
            operations {
                embed: Embed { Ids } [EMBED] embed_case,
                matmul: Matmul { matmul_exact } [MATMUL] matmul_case,
            }
            derivatives {
                embed_backward: EmbedBackward [EMBED_BACKWARD] embed_backward_case,
                matmul_input: MatmulInput { matmul_input_exact } [MATMUL_INPUT] matmul_input_case,
                matmul_weight: MatmulWeight { matmul_weight_exact } [MATMUL_WEIGHT] matmul_weight_case,
            }
            primitives {
                matmul_input_tile128: MatmulInputTile128
                    [MATMUL_INPUT_TILE128, MATMUL_INPUT_TILE128_GROUPS] matmul_input_tile128_case = |_| "matmul_input",
                matmul_weight_tile128: MatmulWeightTile128
                    [MATMUL_WEIGHT_TILE128] matmul_weight_tile128_case = |_| "matmul_weight",
                product: Product [] = |_| "matmul",
            }
            fused {
                glu_matmul_vec: GluMatmulVec [GLU_MATMUL_VEC] glu_matmul_vec_case,
                matmul_tile128_glu: MatmulTile128Glu [MATMUL_TILE128_GLU] matmul_tile128_glu_case,
                matmul_tile64_triple: MatmulTile64Triple [MATMUL_TILE64_TRIPLE] matmul_tile64_triple_case,
                matmul_vec_glu: MatmulGlu [MATMUL_VEC_GLU] matmul_vec_glu_case,
                matmul_vec_group: MatmulGroup [MATMUL_VEC_GROUP] matmul_vec_group_case,
                matmul_vec_norm: MatmulVecNorm [MATMUL_VEC_NORM] matmul_vec_norm_case,
                matmul_vec_q8: MatmulVecAdd [MATMUL_VEC_Q8] matmul_vec_q8_case,
                norm_add_matmul_vec: NormAddMatmulVec [NORM_ADD_MATMUL_VEC] norm_add_matmul_vec_case,
                norm_add_matmul_vec_glu: NormAddMatmulVecGlu [NORM_ADD_MATMUL_VEC_GLU] norm_add_matmul_vec_glu_case,
                norm_matmul_vec: NormMatmulVec [NORM_MATMUL_VEC] norm_matmul_vec_case,
                norm_matmul_vec_glu: NormMatmulVecGlu [NORM_MATMUL_VEC_GLU] norm_matmul_vec_glu_case,
                norm_matmul_vec_group: NormMatmulVecGroup [NORM_MATMUL_VEC_GROUP] norm_matmul_vec_group_case,
                norm_pack_matmul_vec: NormPackMatmulVec [NORM_PACK_MATMUL_VEC] norm_pack_matmul_vec_case,
                norm_pack_matmul_vec_glu: NormPackMatmulVecGlu [NORM_PACK_MATMUL_VEC_GLU] norm_pack_matmul_vec_glu_case,
                product_pair: ProductPair [],
            }
            kernels {
                matmul_narrow: [MATMUL_NARROW],
                matmul_rows8: [MATMUL_ROWS8] matmul_rows8_case,
                matmul_rows8_glu: [MATMUL_ROWS8_GLU] matmul_rows8_glu_case,
                matmul_rows8_group: [MATMUL_ROWS8_GROUP] matmul_rows8_group_case,
                matmul_tile128: [
                    MATMUL_TILE128,
                    MATMUL_TILE128_HALVES,
                    MATMUL_TILE128_GROUPS,
                    MATMUL_TILE128_PAIR,
                    MATMUL_TILE128_HALVES_PAIR
                ] matmul_tile128_case,
                matmul_tile64: [MATMUL_TILE64] matmul_tile64_case,
                matmul_tile64_pair: [MATMUL_TILE64_PAIR] matmul_tile64_pair_case,
                matmul_vec: [MATMUL_VEC] matmul_vec_case,
                norm_matmul_vec_glu_teams: [NORM_MATMUL_VEC_GLU_TEAMS] norm_matmul_vec_glu_teams_case,
                norm_matmul_vec_teams: [NORM_MATMUL_VEC_TEAMS] norm_matmul_vec_teams_case,
            }
            modules {
                ladder,
                problem,
            }
            cases {
                matmul_tile128_pair_case,
            }
        }
    };
}

pub(crate) use matmul as list;

matmul! { family! }
