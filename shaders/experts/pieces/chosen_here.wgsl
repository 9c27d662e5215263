// Experts of matmul_vec_q8_experts_glu.wgsl that every workgroup chooses for itself. One more
// workgroup of each row writes them, and their weights, for the kernels that follow.
// logits [T, count] f32, scale [count] f32 (if has_scale), experts [T, chosen] u32, weights [T,
// chosen] f32, as in route.wgsl; up to MOST experts.
// Needs: WG, order_load, order, choose, lanes_add4. Gives: logits, scale, experts, weights, packed,
// MOST, PARTS, ROUTERS, expert_of, route_row, parts_add, reduce_add.
@group(0) @binding(4) var<storage, read> logits: array<f32>;
@group(0) @binding(5) var<storage, read> scale: array<f32>;
@group(0) @binding(6) var<storage, read_write> experts: array<u32>;
@group(0) @binding(7) var<storage, read_write> weights: array<f32>;
@group(0) @binding(8) var<storage, read_write> packed: array<u32>;

const MOST = 256u;
// Up to 128 experts are ranked at a time.
const PARTS = WG / 128u;
// Workgroups of a row that multiply nothing.
const ROUTERS = 1u;

fn expert_of(row: u32, choice: u32, lid: u32) -> u32 {
    order_load(row, lid);
    return order[choice];
}

fn route_row(row: u32, lid: u32) {
    choose(row, lid);
}

// The sum over the threads that rank an expert.
fn parts_add(v: u32, lid: u32) -> u32 {
    return u32(lanes_add4(vec4<f32>(f32(v), 0.0, 0.0, 0.0), PARTS, lid).x);
}

fn reduce_add(v: f32, lid: u32) -> f32 {
    return lanes_add4(vec4<f32>(v, 0.0, 0.0, 0.0), WG, lid).x;
}
