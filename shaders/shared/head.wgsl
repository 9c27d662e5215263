// One head in workgroup memory, normed and rotated by a workgroup of WG threads; weights in the binding `w`, cosines and sines of
// the rows in `table`. `lid` is the thread's number.
var<workgroup> head: array<f32, 512>;

// head[d] = head[d] / sqrt(mean head^2 + eps), times w[d] if `weighted`. Thread n has written elements n, n + WG, ..
fn head_norm(head_dim: u32, eps: f32, weighted: bool, lid: u32) {
    var sums = vec2<f32>(0.0);
    for (var d = lid; d < head_dim; d += WG) {
        sums = squares(sums, head[d]);
    }
    let total = reduce_add4(vec4<f32>(sums, 0.0, 0.0), lid).xy;
    let factors = inverse_root(total, f32(head_dim), eps);
    for (var d = lid; d < head_dim; d += WG) {
        let v = head[d] * factors.x * factors.y;
        head[d] = select(v, v * w[d], weighted);
    }
}

// Element d of the head at row t of the table, whose first `dim` elements are rotated in pairs (i, i + dim / 2).
fn head_rotated(t: u32, d: u32, dim: u32) -> f32 {
    let half = dim / 2u;
    if (d >= dim) {
        return head[d];
    }
    let at = t * dim + 2u * (d % half);
    let c = table[at];
    let s = table[at + 1u];
    if (d < half) {
        return head[d] * c - head[d + half] * s;
    }
    return head[d] * c + head[d - half] * s;
}
