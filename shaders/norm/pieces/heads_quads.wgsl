// Heads among `lanes` neighbouring threads of a workgroup of WG, a quad each. Threads past the end
// of a head pass zeros. Every thread calls.
// Needs: WG, lanes_add4, squares4, inverse_root. Gives: head, head_normed, head_turned.
var<workgroup> head: array<vec4<f32>, WG>;

// v / sqrt(mean head^2 + eps)
fn head_normed(v: vec4<f32>, head_dim: u32, eps: f32, lanes: u32, lid: u32) -> vec4<f32> {
    let total = lanes_add4(vec4<f32>(squares4(vec2<f32>(0.0), v), 0.0, 0.0), lanes, lid).xy;
    let factors = inverse_root(total, f32(head_dim), eps);
    return v * factors.x * factors.y;
}

// The quad after the rotation of the head's first `dim` elements.
fn head_turned(v: vec4<f32>, quad: u32, dim: u32, turns: mat2x4<f32>, lid: u32) -> vec4<f32> {
    head[lid] = v;
    workgroupBarrier();
    let half = dim >> 3u;
    if (quad >= 2u * half) {
        return v;
    }
    let upper = quad >= half;
    let other = head[select(lid + half, lid - half, upper)];
    return v * turns[0] + select(-other, other, upper) * turns[1];
}
