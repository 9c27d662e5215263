// 32 neighbouring weights as a unit of any format: four weights at a time, dequantized as they are
// loaded.
fn W_halves(u: u32) -> vec2<u32> {
    return vec2<u32>(2u * u, 2u * u + 1u);
}

// Eight weights to a member.
struct W_Held { a: mat2x4<f16>, b: mat2x4<f16>, c: mat2x4<f16>, d: mat2x4<f16> }

fn W_eight_at(row: u32, k: u32, eight: u32) -> mat2x4<f16> {
    return mat2x4<f16>(vec4<f16>(W_load4(row, k, 2u * eight)), vec4<f16>(W_load4(row, k, 2u * eight + 1u)));
}

fn W_held(row: u32, k: u32, u: u32) -> W_Held {
    let at = 4u * u;
    return W_Held(W_eight_at(row, k, at), W_eight_at(row, k, at + 1u), W_eight_at(row, k, at + 2u), W_eight_at(row, k, at + 3u));
}

struct W_Ready { held: W_Held, live: bool }

// `live` is 1, or 0 for a unit past the end of the row, whose weights are then zero.
fn W_ready(held: W_Held, u: u32, live: f32) -> W_Ready {
    return W_Ready(held, live > 0.0);
}

// Eight weights of the low or the high half of a unit: the first or the second eight.
fn W_eight(ready: W_Ready, u: u32, late: bool, second: bool) -> mat2x4<f16> {
    var eight = ready.held.a;
    if (late) {
        eight = ready.held.c;
        if (second) {
            eight = ready.held.d;
        }
    } else if (second) {
        eight = ready.held.b;
    }
    let none = vec4<f16>(0.0h);
    let live = vec4<bool>(ready.live);
    return mat2x4<f16>(select(none, eight[0], live), select(none, eight[1], live));
}
