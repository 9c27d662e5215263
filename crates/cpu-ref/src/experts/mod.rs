//! Mixtures of experts: routes, products of the chosen experts, and their sums.

oracles! {
    combine_experts;
    combine_experts_backward;
    group_experts;
    matmul_experts;
    matmul_experts_input;
    matmul_vec_experts;
    route: route, RouteSpec;
    route_backward;
    sum_slots;
}
