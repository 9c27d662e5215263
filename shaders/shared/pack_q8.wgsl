// Writes activations as 8-bit quants into the binding `packed`, four per thread; see pack_q8.wgsl for the layout. Every thread of a workgroup of WG
// calls, with neighbouring quads in neighbouring threads, from a multiple of 8 on, and its quad's part of the block's share. The scale has 16 bits of significand, so
// that x - q d is exact and the choice between neighbours does not hang on how a device divides.
var<workgroup> pack_most: array<f32, WG>;
// Sums of quants, and shares.
var<workgroup> pack_sums: array<vec2<f32>, WG>;

fn pack_q8_quad(row: u32, k: u32, quad: u32, inside: bool, v: vec4<f32>, share: f32, lid: u32) {
    let size = max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w)));
    workgroupBarrier();
    pack_most[lid] = select(0.0, size, inside);
    workgroupBarrier();
    let first = lid & ~7u;
    var largest = 0.0;
    for (var i = 0u; i < 8u; i++) {
        largest = max(largest, pack_most[first + i]);
    }
    let tiny = largest < 1e-30;
    let d = select(bitcast<f32>((bitcast<u32>(largest * 0.007874016) + 255u) & 0xffffff00u), 0.0, tiny);
    let inverse = select(1.0 / d, 0.0, tiny);
    var q = floor(v * inverse + 0.5);
    let rest = v - q * d;
    q += select(vec4<f32>(0.0), vec4<f32>(1.0), rest >= vec4<f32>(0.5 * d)) - select(vec4<f32>(0.0), vec4<f32>(1.0), rest < vec4<f32>(-0.5 * d));
    q = select(q, vec4<f32>(0.0), tiny);
    pack_sums[lid] = vec2<f32>(q.x + q.y + q.z + q.w, share);
    workgroupBarrier();
    if (!inside) {
        return;
    }
    let start = row * (k / 8u * 3u);
    packed[start + quad] = pack4xI8Clamp(vec4<i32>(q));
    // The first four threads of a block write its four words beside the quants.
    let word = lid & 7u;
    if (word < 4u) {
        let low = pack_sums[first] + pack_sums[first + 1u] + (pack_sums[first + 2u] + pack_sums[first + 3u]);
        let high = pack_sums[first + 4u] + pack_sums[first + 5u] + (pack_sums[first + 6u] + pack_sums[first + 7u]);
        let words = vec4<f32>(d, d * low.x, d * high.x, low.y + high.y);
        packed[start + (k >> 2u) + (quad >> 3u) * 4u + word] = bitcast<u32>(words[word]);
    }
}
