//! Mixtures of experts: routes, products of the chosen experts, and their sums.
//!
//! The choice of experts is discrete, so products of routers (`matmul_exact`) are f32 even if other
//! products are narrowed. In plans that round freely a router norms its rows itself, so that the
//! other reader of the norm packs them without a separate norm.
//!
//! In such plans, products of experts read 8 bits if dense products of as many rows do, or in a
//! step of at most one row for each sequence, while each expert has few slots, on average. The pass
//! that makes these operands then cuts the slots into tiles of eight, so an expert with many slots
//! has many workgroups. Other products read f16 through cooperative matrices. Their rows are
//! gathered in the order of the slots (`gather_slots`), in slabs of 16 columns, so that fragments
//! load from memory.

/// The one list of the family.
macro_rules! experts {
    ($then:ident! $($with:tt)*) => {
        $then! { $($with)* experts
            operations {
                combine_experts: CombineExperts [COMBINE_EXPERTS] combine_experts_case,
                group_experts: GroupExperts [GROUP_EXPERTS] group_experts_case,
                matmul_experts: MatmulExperts [MATMUL_EXPERTS] matmul_experts_case,
                route: Route { MAX_EXPERTS, Routes } [ROUTE] route_case,
            }
            derivatives {
                combine_experts_backward: CombineExpertsBackward
                    [COMBINE_EXPERTS_BACKWARD] combine_experts_backward_case,
                matmul_experts_input: MatmulExpertsInput [MATMUL_EXPERTS_INPUT] matmul_experts_input_case,
                route_backward: RouteBackward [ROUTE_BACKWARD] route_backward_case,
                sum_slots: SumSlots [SUM_SLOTS] sum_slots_case,
            }
            primitives {
                matmul_tile64_experts: MatmulTile64Experts
                    [MATMUL_TILE64_EXPERTS] matmul_tile64_experts_case = |_| "matmul_experts",
                matmul_vec_q8_experts: MatmulVecQ8Experts
                    [MATMUL_VEC_Q8_EXPERTS] matmul_vec_q8_experts_case = |_| "matmul_experts",
            }
            fused {
                matmul_vec_q8_experts_glu: MatmulExpertsGlu
                    [MATMUL_VEC_Q8_EXPERTS_GLU, ROUTE_MATMUL_VEC_Q8_EXPERTS_GLU] matmul_vec_q8_experts_glu_case,
                matmul_vec_q8_experts_sum: MatmulExpertsSum [MATMUL_VEC_Q8_EXPERTS_SUM],
            }
            kernels {
                matmul_rows8_experts: [MATMUL_ROWS8_EXPERTS] matmul_rows8_experts_case,
                matmul_rows8_experts_glu: [MATMUL_ROWS8_EXPERTS_GLU],
                matmul_vec_experts: [MATMUL_VEC_EXPERTS] matmul_vec_experts_case,
                matmul_vec_experts_input: [MATMUL_VEC_EXPERTS_INPUT],
            }
            modules {}
            cases {}
        }
    };
}

pub(crate) use experts as list;

experts! { family! }
