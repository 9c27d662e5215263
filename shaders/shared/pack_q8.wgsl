// Activations as 8-bit quants, four per thread (q8_block.wgsl). Every thread of a workgroup of WG
// calls. The eight threads of a block are neighbours, from a multiple of 8 on. Each passes its part
// of the block's share.
// Needs: WG, Q8Part, q8_scale, q8_quants, q8_part. Gives: q8_quad.
var<workgroup> pack_most: array<f32, WG>;
// Sums of quants, and shares.
var<workgroup> pack_sums: array<vec2<f32>, WG>;

fn q8_quad(inside: bool, v: vec4<f32>, share: f32, lid: u32) -> Q8Part {
    let size = max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w)));
    pack_most[lid] = select(0.0, size, inside);
    workgroupBarrier();
    let first = lid & ~7u;
    var largest = 0.0;
    for (var i = 0u; i < 8u; i++) {
        largest = max(largest, pack_most[first + i]);
    }
    let scale = q8_scale(largest);
    let q = q8_quants(v, scale);
    pack_sums[lid] = vec2<f32>(q.x + q.y + q.z + q.w, share);
    workgroupBarrier();
    let low = pack_sums[first] + pack_sums[first + 1u] + (pack_sums[first + 2u] + pack_sums[first + 3u]);
    let high = pack_sums[first + 4u] + pack_sums[first + 5u] + (pack_sums[first + 6u] + pack_sums[first + 7u]);
    return q8_part(q, scale, low, high, lid);
}
