// With c = min(1, most / (sqrt(squares) + 1e-6)) and the gradient c g:
// m = keep1 m + gain1 c g, v = keep2 v + gain2 (c g)^2
// p = p (1 - rate decay) - rate m / c1 / (sqrt(v / c2) + eps)
// (Loshchilov & Hutter 2017, arXiv 1711.05101, as in PyTorch's AdamW)
// g, p, m, v [n] f32, squares [1] f32, step (rate, most, c1, c2) f32. One thread per element.
// Nothing changes if `squares` is not finite, which its bits tell.
// Needs: workgroup_number (grid.wgsl), is_number (is_number.wgsl). Gives: nothing.
struct Params { n: u32, keep1: f32, gain1: f32, keep2: f32, gain2: f32, eps: f32, decay: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> g: array<f32>;
@group(0) @binding(2) var<storage, read> squares: array<f32>;
@group(0) @binding(3) var<storage, read> step: array<f32>;
@group(0) @binding(4) var<storage, read_write> p: array<f32>;
@group(0) @binding(5) var<storage, read_write> m: array<f32>;
@group(0) @binding(6) var<storage, read_write> v: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn adamw(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i >= params.n || !is_number(squares[0])) { //~ surplus: comparison
        return;
    }
    let rate = step[0];
    let norm = sqrt(squares[0]) + 1e-6; //~ small: sign
    let gradient = g[i] * select(1.0, step[1] / norm, norm > step[1]); //~ meet: comparison
    let first = params.keep1 * m[i] + params.gain1 * gradient;
    let second = params.keep2 * v[i] + params.gain2 * gradient * gradient;
    let moved = rate * first / step[2] / (sqrt(second / step[3]) + params.eps);
    p[i] = p[i] * (1.0 - rate * params.decay) - moved;
    m[i] = first;
    v[i] = second;
}
