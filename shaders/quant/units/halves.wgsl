// 32 weights of 16 bits as a unit, for matmul_tile64.wgsl, which stages one half of the unit after
// the other. In rows of a multiple of 128 columns, four units share 128 neighbouring columns, so
// that four neighbouring threads load 128 neighbouring bytes for each half. In other rows the 32
// weights of a unit are neighbours.
fn W_halves(u: u32) -> vec2<u32> {
    let together = (params.k & 127u) == 0u;
    let low = select(2u * u, 2u * u - (u & 3u), together);
    return vec2<u32>(low, low + select(1u, 4u, together));
}

// A unit as it is stored: eight weights to a member, first those of its low half.
struct W_Held { a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32> }

fn W_held(row: u32, k: u32, u: u32) -> W_Held {
    let at = vec2<u32>(row >> 2u) + 2u * W_halves(u);
    return W_Held(W[at.x], W[at.x + 1u], W[at.y], W[at.y + 1u]);
}

struct W_Ready { a: vec4<u32>, b: vec4<u32>, c: vec4<u32>, d: vec4<u32> }

// `live` is 1, or 0 for a unit past the end of the row, whose weights are then zero.
fn W_ready(held: W_Held, u: u32, live: f32) -> W_Ready {
    let kept = vec4<u32>(select(0u, 0xffffffffu, live > 0.0)); //~ small: off by one
    return W_Ready(held.a & kept, held.b & kept, held.c & kept, held.d & kept);
}

// Eight weights of the low or the high half of a unit: the first or the second eight.
fn W_eight(ready: W_Ready, u: u32, late: bool, second: bool) -> mat2x4<f16> {
    let eight = W_eight_of(select(select(ready.a, ready.b, second), select(ready.c, ready.d, second), late));
    return mat2x4<f16>(vec4<f16>(eight[0]), vec4<f16>(eight[1]));
}
