// Writes 32 activations as 8-bit quants into the binding `packed`; see pack_q8.wgsl for the layout. The scale has 16 bits of
// significand, so that x - q d is exact and the choice between neighbours does not hang on how a device divides.
fn pack_q8_store(row: u32, k: u32, block: u32, v: array<vec4<f32>, 8>) {
    var most = vec4<f32>(0.0);
    for (var j = 0u; j < 8u; j++) {
        most = max(most, abs(v[j]));
    }
    let largest = max(max(most.x, most.y), max(most.z, most.w));
    let tiny = largest < 1e-30;
    let d = select(bitcast<f32>((bitcast<u32>(largest * 0.007874016) + 255u) & 0xffffff00u), 0.0, tiny);
    let inverse = select(1.0 / d, 0.0, tiny);
    var quants: array<vec4<u32>, 2>;
    var sums: vec2<f32>;
    for (var h = 0u; h < 2u; h++) {
        var sum = vec4<f32>(0.0);
        for (var j = 0u; j < 4u; j++) {
            let value = v[4u * h + j];
            var q = floor(value * inverse + 0.5);
            let rest = value - q * d;
            q += select(vec4<f32>(0.0), vec4<f32>(1.0), rest >= vec4<f32>(0.5 * d)) - select(vec4<f32>(0.0), vec4<f32>(1.0), rest < vec4<f32>(-0.5 * d));
            q = select(q, vec4<f32>(0.0), tiny);
            quants[h][j] = pack4xI8Clamp(vec4<i32>(q));
            sum += q;
        }
        sums[h] = sum.x + sum.y + sum.z + sum.w;
    }
    let start = row * (3u * k >> 5u);
    packed[start + 2u * block] = quants[0];
    packed[start + 2u * block + 1u] = quants[1];
    packed[start + (k >> 4u) + block] = bitcast<vec4<u32>>(vec4<f32>(d, d * sums.x, d * sums.y, 0.0));
}
