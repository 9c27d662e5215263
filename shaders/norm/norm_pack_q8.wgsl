// h[r] = a[r] + b[r]; packed[r] = h[r, d] w[d] in 8 bits (layout: pack_q8.wgsl), with the share of
// every block in s = 2^-64 (mean_d h[r, d]^2 + eps)
// Readers divide by sqrt(2^64 s), so no row has to be summed before it is packed. a, b, h [rows,
// dim] f32 (b and h not touched when has_add = 0), w [dim] f32 (not read when has_weight = 0), dim
// a multiple of 32. One thread per four elements.
// Needs: workgroup_number (grid.wgsl), norm_share (norm_share.wgsl), pack_q8_quad (q8_store.wgsl).
// Gives: WG, packed.
struct Params { dim: u32, rows: u32, has_add: u32, has_weight: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> packed: array<u32>;

const WG = 64u;

@compute @workgroup_size(WG)
fn norm_pack_q8(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let quads = params.dim >> 2u;
    let number = workgroup_number(id, extents) * WG + lid;
    let row = number / quads;
    let inside = row < params.rows;
    let at = min(number, params.rows * quads - 1u);
    var v = a[at];
    if (params.has_add == 1u) {
        v += b[at];
        if (inside) { //~ clamped: guard dropped
            h[at] = v;
        }
    }
    let share = norm_share(v, params.dim, params.eps);
    if (params.has_weight == 1u) {
        v *= w[at % quads];
    }
    pack_q8_quad(row, params.dim, number % quads, inside, v, share, lid);
}
