// y = w x, with x = sum_s 2^(m_s - m) a_s / sum_s 2^(m_s - m) l_s in 8 bits and m = max_s m_s, over
// the parts (a, m, l) of an attention
// partial [heads, splits, head_dim + 4] f32 as in attention_decode_window.wgsl, splits a multiple
// of 4; w [n, k = heads head_dim] in a format with units; y f32 [n]. Every workgroup makes x for
// itself (acts_own.wgsl). One workgroup for 16 rows of w, 32 lanes each.
// Needs: workgroup_number (grid.wgsl), acts_quad (acts_own.wgsl), w_row, w_steps, w_step (the
// format of w), acts_row (dot_q8.wgsl), lanes_add (lanes_near.wgsl). Gives: WG.
struct Params { k: u32, n: u32, head_dim: u32, splits: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partial: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

const WG = 512u;
const LANES = 32u;
const WEIGHT_ROWS = WG / LANES;
const LOWEST = -3.0e38;

// Joins the parts of quad `quad` of the row, four parts at a time.
fn joined(quad: u32) -> vec4<f32> {
    let quads = params.head_dim >> 2u;
    let pitch = quads + 1u;
    let start = quad / quads * params.splits * pitch;
    var most = LOWEST;
    var total = 0.0;
    var sum = vec4<f32>(0.0);
    for (var s = 0u; s < params.splits; s += 4u) {
        let at = start + s * pitch;
        let of_a = partial[at + quads].xy;
        let of_b = partial[at + pitch + quads].xy;
        let of_c = partial[at + 2u * pitch + quads].xy;
        let of_d = partial[at + 3u * pitch + quads].xy;
        let a = partial[at + quad % quads];
        let b = partial[at + pitch + quad % quads];
        let c = partial[at + 2u * pitch + quad % quads];
        let d = partial[at + 3u * pitch + quad % quads];
        let highest = max(most, max(max(of_a.x, of_b.x), max(of_c.x, of_d.x))); //~ cancels: component
        let shrink = exp2(most - highest);
        let factors = exp2(vec4<f32>(of_a.x, of_b.x, of_c.x, of_d.x) - highest);
        most = highest;
        total = total * shrink + dot(factors, vec4<f32>(of_a.y, of_b.y, of_c.y, of_d.y));
        sum = sum * shrink + (a * factors.x + b * factors.y + (c * factors.z + d * factors.w));
    }
    return sum * (1.0 / total);
}

@compute @workgroup_size(WG)
fn merge_matmul_vec(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number * WEIGHT_ROWS >= params.n) {
        return;
    }
    let k = params.k;
    let quads = k >> 2u;
    for (var start = 0u; start < quads; start += WG) {
        let quad = start + lid;
        acts_quad(k, quad, quad < quads, joined(min(quad, quads - 1u)), 0.0, lid);
    }
    workgroupBarrier();
    let lane = lid % LANES;
    let r = WEIGHT_ROWS * number + lid / LANES;
    // w_step takes two rows. Given the same row twice, it loads and multiplies it once.
    let row = w_row(min(r, params.n - 1u), k);
    var sum = 0.0;
    for (var j = lane; j < w_steps(k); j += LANES) {
        sum += w_step(row, row, k, j, acts_row(0u, k)).x; //~ alike: component
    }
    let total = lanes_add(sum, LANES, lid);
    if (lane == 0u && r < params.n) { //~ twice: off by one
        y[r] = total;
    }
}
