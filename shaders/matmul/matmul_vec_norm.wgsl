// h = a + f w x; packed = h u in 8 bits (layout: pack_q8.wgsl), with the shares of its norm
// (norm_pack_q8.wgsl), and with f the factor of the norm that readers of x apply, or 1
// x one row of activations in 8 bits, w [n, k] in a format with units, n a multiple of 32, a, h f32
// [n], u [n] f32 (not read when has_weight = 0). One workgroup of WG threads for a block of 32
// results: PARTS times 32 lanes for two rows.
// Needs: PARTS, WG (the variant), workgroup_number (grid.wgsl), w_row, w_steps, w_step (the format
// of w), acts_row, acts_factor (dot_q8.wgsl), lanes_each4 (lanes_near.wgsl), pack_q8_quad
// (q8_store.wgsl), norm_share (norm_share.wgsl). Gives: x, packed.
struct Params { k: u32, n: u32, has_weight: u32, exchange: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> u: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> h: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read_write> packed: array<u32>;

const LANES = 32u;
const QUARTER = LANES / 4u;
// For each pair of rows and part: the sums of both rows, and of the shares.
var<workgroup> parts: array<vec4<f32>, 16u * PARTS>;

@compute @workgroup_size(WG)
fn matmul_vec_norm(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    if (number >= params.n >> 5u) {
        return;
    }
    let k = params.k;
    let lane = lid % LANES;
    let part = lid / LANES;
    let r = 32u * number + 2u * (part / PARTS);
    let first = w_row(r, k);
    let second = w_row(r + 1u, k);
    var sums = vec3<f32>(0.0);
    for (var j = part % PARTS * LANES + lane; j < w_steps(k); j += PARTS * LANES) {
        sums += w_step(first, second, k, j, acts_row(0u, k));
    }
    // The first eight threads load here what they add at the end, so that the loads overlap the
    // sums. Loads before the loop would take registers from the loop.
    let inside = lid < 8u; //~ race: comparison, off by one
    let at = 8u * number + min(lid, 7u); //~ dropped: off by one
    var added = vec4<f32>(0.0);
    var weight = vec4<f32>(1.0);
    if (inside) { //~ clamped: guard dropped
        added = a[at];
        if (params.has_weight == 1u) {
            weight = u[at];
        }
    }
    let total = lanes_each4(sums.xyzz, LANES, lid);
    if (lane % QUARTER == 0u) {
        parts[part][lane / QUARTER] = total;
    }
    workgroupBarrier();
    let pair = 2u * min(lid, 7u); //~ dropped: off by one
    let low = pair_sums(pair);
    let v = vec4<f32>(low.xy, pair_sums(pair + 1u).xy) * acts_factor(low.z) + added; //~ alike: component
    if (inside) {
        h[at] = v;
    }
    pack_q8_quad(0u, params.n, at, inside, v * weight, norm_share(v, params.n, params.eps), lid);
}

fn pair_sums(pair: u32) -> vec4<f32> {
    var sums = parts[pair * PARTS];
    for (var part = 1u; part < PARTS; part++) {
        sums += parts[pair * PARTS + part];
    }
    return sums;
}
