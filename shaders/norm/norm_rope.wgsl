// y[t, n] = rope(x[t, n] / sqrt(mean x[t, n]^2 + eps) * w): the norm of every head and its rotation
// x, y [rows, heads, head_dim] f32, head_dim a multiple of 4, at most 512, w [head_dim] f32 (not
// read when has_weight = 0), table [rows, dim / 2, 2] f32, dim a multiple of 8. `lanes` threads per
// head, a power of two, with a quad each. lanes_subgroup.wgsl explains `exchange`.
// Needs: workgroup_number (grid.wgsl), head_turns (head_turns.wgsl), head_normed, head_turned
// (heads_quads.wgsl). Gives: WG, table.
struct Params { heads: u32, head_dim: u32, dim: u32, rows: u32, lanes: u32, exchange: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> table: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

const WG = 128u;

@compute @workgroup_size(WG)
fn norm_rope(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let heads = params.rows * params.heads;
    let number = workgroup_number(id, extents) * (WG / params.lanes) + lid / params.lanes;
    let quads = params.head_dim >> 2u;
    let own = lid % params.lanes;
    let inside = own < quads && number < heads; //~ clamped: comparison
    let quad = min(own, quads - 1u);
    let which = min(number, heads - 1u);
    let at = which * quads + quad;
    let turns = head_turns(which / params.heads, quad, params.dim);
    var weight = vec4<f32>(1.0);
    if (params.has_weight == 1u) {
        weight = w[quad];
    }
    let normed = head_normed(select(vec4<f32>(0.0), x[at], inside), params.head_dim, params.eps, params.lanes, lid) * weight;
    let turned = head_turned(normed, quad, params.dim, turns, lid);
    if (inside) {
        y[at] = turned;
    }
}
