// Two rows of activations in 8 bits, of each of which a lane holds a block of 32 at a time (few_rows.wgsl), and their sums with rows of weights.
const STEPS = 2u;
// Whether registers suffice to load the next rows of weights while some are multiplied.
const AHEAD = true;
alias Sums = vec2<f32>;
struct Held { x0: Act, x1: Act }

fn held_load(t: u32, last: u32, k: u32, block: u32, live: f32) -> Held {
    return Held(
        act_load(t, k, block, live),
        act_load(t + min(1u, last), k, block, live)
    );
}

// A lane's first row of weights of four is this one, its others by exclusive or with their numbers: of lanes that exchange sums none has to choose.
fn held_order(lid: u32) -> u32 {
    return (lid >> 1u) & 3u;
}

fn held_dots(h: Held, w: Unit, alike: bool) -> Sums {
    return Sums(dot_block(w, h.x0, alike), dot_block(w, h.x1, alike));
}

// What lanes that differ in the bit of a row of activations have in all, each of its own.
fn held_own(two: vec2<f32>, lid: u32) -> f32 {
    let odd = (lid & 1u) == 1u;
    return select(two.x, two.y, odd) + lanes_other(select(two.y, two.x, odd), 1u, lid);
}

// The sum over 32 lanes of the shares of a lane's own row.
fn held_share(h: Held, lid: u32) -> f32 {
    var sum = held_own(vec2<f32>(h.x0.share, h.x1.share), lid);
    sum += lanes_other(sum, 2u, lid);
    sum += lanes_other(sum, 4u, lid);
    sum += lanes_other(sum, 8u, lid);
    sum += lanes_other(sum, 16u, lid);
    return sum;
}

// The sum over 32 lanes that is a lane's own: of its own row of activations with its own of weights.
fn held_total(a: Sums, b: Sums, c: Sums, d: Sums, lid: u32) -> f32 {
    var sum = held_own(a + lanes_other2(c, 4u, lid) + lanes_other2(b + lanes_other2(d, 4u, lid), 2u, lid), lid);
    sum += lanes_other(sum, 8u, lid);
    return sum + lanes_other(sum, 16u, lid);
}
