// y = w x, with x = gelu(gate) * up[start..] in 8 bits, which every workgroup makes for itself
// (acts_own.wgsl)
// gate f32 [k], up f32 (start a multiple of 4), w [n, k] in a format with units, k a multiple of
// 32, y f32 [n]. `lanes` threads, a power of two, for two rows of w.
// Needs: workgroup_number (grid.wgsl), w_unit, w_row, w_halves (the format of w), acts_quad
// (acts_own.wgsl), activation (gelu4.wgsl), acts_load, acts_row, dot_unit (dot_q8.wgsl), lanes_add4
// (lanes.wgsl). Gives: WG.
struct Params { k: u32, n: u32, start: u32, lanes: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> up: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

const WG = 128u;

@compute @workgroup_size(WG)
fn glu_matmul_vec(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let lanes = params.lanes;
    let rows = 2u * WG / lanes;
    let number = workgroup_number(id, extents);
    if (number * rows >= params.n) {
        return;
    }
    let k = params.k;
    let lane = lid % lanes;
    let r = number * rows + 2u * (lid / lanes);
    // A lane has at most one unit of each row. These units are loaded while the workgroup makes x.
    let units = k >> 5u;
    let unit = min(lane, units - 1u);
    let first = w_unit(w_row(min(r, params.n - 1u), k), k, unit);
    let second = w_unit(w_row(min(r + 1u, params.n - 1u), k), k, unit);
    let quads = k >> 2u;
    for (var start = 0u; start < quads; start += WG) {
        let at = min(start + lid, quads - 1u);
        acts_quad(k, start + lid, start + lid < quads, activation(gate[at]) * up[(params.start >> 2u) + at], 0.0, lid);
    }
    workgroupBarrier();
    let acts = acts_load(acts_row(0u, k), w_halves(unit));
    let dots = select(vec2<f32>(0.0), vec2<f32>(dot_unit(first, acts), dot_unit(second, acts)), lane < units);
    let total = lanes_add4(vec4<f32>(dots, 0.0, 0.0), lanes, lid);
    if (lane < 2u && r + lane < params.n) { //~ race: comparison, off by one
        y[r + lane] = total[lane];
    }
}
