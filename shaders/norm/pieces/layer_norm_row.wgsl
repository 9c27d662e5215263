// The normalisation of a row. The mean is rounded, so the differences to it have a small mean of
// their own (`rest`), which is subtracted, too. The row is multiplied by a power of two first, so
// that squares do not overflow.
// Needs: params.dim, WG, x, reduce_max, reduce_add, params.eps. Gives: layer_norm_element,
// layer_norm_row.
struct LayerNormRow { unit: f32, mean: f32, rest: f32, scale: f32 }

// (x - mean) / sqrt(variance + eps) of an element of the row.
fn layer_norm_element(row: LayerNormRow, v: f32) -> f32 {
    return (v * row.unit - row.mean - row.rest) * row.scale;
}

// The row that begins at element `base`. Every thread calls.
fn layer_norm_row(base: u32, lid: u32) -> LayerNormRow {
    var largest = 0.0;
    for (var d = lid; d < params.dim; d += WG) { //~ free: comparison
        largest = max(largest, abs(x[base + d])); //~ free: sign
    }
    let exponent = clamp(bitcast<u32>(reduce_max(largest, lid)) >> 23u, 127u, 253u); //~ free: off by one
    let unit = bitcast<f32>((254u - exponent) << 23u); //~ free: off by one
    var sum = 0.0;
    // The second mean takes away what is wrong with the first.
    for (var d = lid; d < params.dim; d += WG) {
        sum += x[base + d] * unit;
    }
    let mean = reduce_add(sum, lid) / f32(params.dim);
    sum = 0.0;
    var squares = 0.0;
    for (var d = lid; d < params.dim; d += WG) {
        let v = x[base + d] * unit - mean;
        sum += v;
        squares += v * v;
    }
    let rest = reduce_add(sum, lid) / f32(params.dim);
    let variance = reduce_add(squares, lid) / f32(params.dim);
    return LayerNormRow(unit, mean, rest, inverseSqrt(variance + params.eps * unit * unit));
}
