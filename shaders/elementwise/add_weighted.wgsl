// y[t, d] = base[t, d] + sum_j (c[t, first + j] + shift) * x_j[t, d] for j < count
// base, x0 .. x3, y [n / dim, dim] f32, of which the first `count` x are read; c [n / dim, columns]
// f32. A sum of tensors whose weights differ from row to row (the predictions and corrections of
// AltUp, Baykal et al. 2023, arXiv 2301.13310). One thread per element.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { n: u32, dim: u32, columns: u32, first: u32, count: u32, shift: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> base: array<f32>;
@group(0) @binding(2) var<storage, read> c: array<f32>;
@group(0) @binding(3) var<storage, read> x0: array<f32>;
@group(0) @binding(4) var<storage, read> x1: array<f32>;
@group(0) @binding(5) var<storage, read> x2: array<f32>;
@group(0) @binding(6) var<storage, read> x3: array<f32>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn add_weighted(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i >= params.n) {
        return;
    }
    let at = (i / params.dim) * params.columns + params.first;
    var sum = base[i] + (c[at] + params.shift) * x0[i];
    if (params.count > 1u) {
        sum += (c[at + 1u] + params.shift) * x1[i];
    }
    if (params.count > 2u) {
        sum += (c[at + 2u] + params.shift) * x2[i];
    }
    if (params.count > 3u) {
        sum += (c[at + 3u] + params.shift) * x3[i];
    }
    y[i] = sum;
}
