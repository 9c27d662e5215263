// Experts of matmul_vec_q8_experts_glu.wgsl that an earlier kernel chose: experts [T, chosen] u32.
// Needs: params.chosen. Gives: experts, packed, ROUTERS, expert_of, route_row.
@group(0) @binding(4) var<storage, read> experts: array<u32>;
@group(0) @binding(5) var<storage, read_write> packed: array<u32>;

// Workgroups of a row that multiply nothing.
const ROUTERS = 0u;

fn expert_of(row: u32, choice: u32, lid: u32) -> u32 {
    return experts[row * params.chosen + choice];
}

fn route_row(row: u32, lid: u32) {
}
