// y[i] = cap tanh(x[i] / cap), as shared/soft_cap.wgsl makes it        (Gemma 2 report, arXiv 2408.00118, section 2)
// x, y [n] f32. One thread per element.
struct Params { n: u32, cap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

const WG = 256u;

@compute @workgroup_size(WG)
fn softcap(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let i = workgroup_number(id, extents) * WG + lid;
    if (i < params.n) {
        y[i] = soft_cap(x[i], params.cap);
    }
}
