// Eight rows of activations in 8 bits, of each of which a lane holds a block of 32 at a time (few_rows.wgsl), and their sums with rows of weights.
const STEPS = 8u;
// Whether registers suffice to load the next rows of weights while some are multiplied.
const AHEAD = false;
alias Sums = mat2x4<f32>;
struct Held { x0: Act, x1: Act, x2: Act, x3: Act, x4: Act, x5: Act, x6: Act, x7: Act }

fn held_load(t: u32, last: u32, k: u32, block: u32, live: f32) -> Held {
    return Held(
        act_load(t, k, block, live),
        act_load(t + min(1u, last), k, block, live),
        act_load(t + min(2u, last), k, block, live),
        act_load(t + min(3u, last), k, block, live),
        act_load(t + min(4u, last), k, block, live),
        act_load(t + min(5u, last), k, block, live),
        act_load(t + min(6u, last), k, block, live),
        act_load(t + min(7u, last), k, block, live)
    );
}

// A lane's first row of weights of four is this one, its others by exclusive or with their numbers: of lanes that exchange sums none has to choose.
fn held_order(lid: u32) -> u32 {
    return (lid >> 3u) & 3u;
}

fn held_dots(h: Held, w: Unit, alike: bool) -> Sums {
    return Sums(
        dot_block(w, h.x0, alike), dot_block(w, h.x1, alike), dot_block(w, h.x2, alike), dot_block(w, h.x3, alike),
        dot_block(w, h.x4, alike), dot_block(w, h.x5, alike), dot_block(w, h.x6, alike), dot_block(w, h.x7, alike)
    );
}

// What lanes that differ in the bits of a row of activations have in all, each of its own.
fn held_own(low: vec4<f32>, high: vec4<f32>, lid: u32) -> f32 {
    let upper = (lid & 4u) == 4u;
    let four = select(low, high, upper) + lanes_other4(select(high, low, upper), 4u, lid);
    let later = (lid & 2u) == 2u;
    let two = select(four.xy, four.zw, later) + lanes_other2(select(four.zw, four.xy, later), 2u, lid);
    let odd = (lid & 1u) == 1u;
    return select(two.x, two.y, odd) + lanes_other(select(two.y, two.x, odd), 1u, lid);
}

// The sum over 32 lanes of the shares of a lane's own row.
fn held_share(h: Held, lid: u32) -> f32 {
    var sum = held_own(vec4<f32>(h.x0.share, h.x1.share, h.x2.share, h.x3.share), vec4<f32>(h.x4.share, h.x5.share, h.x6.share, h.x7.share), lid);
    sum += lanes_other(sum, 8u, lid);
    sum += lanes_other(sum, 16u, lid);
    return sum;
}

// The sum over 32 lanes that is a lane's own: of its own row of activations with its own of weights.
fn held_total(a: Sums, b: Sums, c: Sums, d: Sums, lid: u32) -> f32 {
    let low = a[0] + lanes_other4(c[0], 16u, lid) + lanes_other4(b[0] + lanes_other4(d[0], 16u, lid), 8u, lid);
    let high = a[1] + lanes_other4(c[1], 16u, lid) + lanes_other4(b[1] + lanes_other4(d[1], 16u, lid), 8u, lid);
    return held_own(low, high, lid);
}
