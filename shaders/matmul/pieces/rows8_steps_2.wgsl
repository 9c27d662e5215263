// Two rows of activations in 8 bits, and their sums with rows of weights. A lane holds one block of
// 32 of each row at a time (rows8_sums.wgsl).
// Needs: Act, act_load, Unit, dot_block, lanes_other2, steps_bit, lanes_other, rows_bit. Gives:
// STEPS, Sums, Held, held_load, held_dots, held_pair, held_own, held_share.
const STEPS = 2u;
alias Sums = vec2<f32>;
struct Held { x0: Act, x1: Act }

fn held_load(t: u32, last: u32, k: u32, block: u32, turn: u32, live: f32) -> Held {
    return Held(
        act_load(t, k, block, turn, live),
        act_load(t + min(1u, last), k, block, turn, live) //~ never: minimum, off by one
    );
}

fn held_dots(h: Held, w: Unit, alike: bool) -> Sums {
    return Sums(dot_block(w, h.x0, alike), dot_block(w, h.x1, alike));
}

// The sums of this lane's row of weights: `a` of this lane plus `b` of the lane `apart` from it.
fn held_pair(a: Sums, b: Sums, apart: u32, lid: u32) -> Sums {
    return a + lanes_other2(b, apart, lid);
}

// Sums over the lanes that differ in other bits than the bits of held_order. Each lane gets the sum
// of its own row of activations.
fn held_own(two: Sums, near: bool, lid: u32) -> f32 {
    let bit = steps_bit(near);
    let odd = (lid & bit) != 0u;
    var sum = select(two.x, two.y, odd) + lanes_other(select(two.y, two.x, odd), bit, lid);
    sum += lanes_other(sum, 8u, lid);
    return sum + lanes_other(sum, 16u, lid);
}

// Sum over 32 lanes of the shares of the lane's own row.
fn held_share(h: Held, near: bool, lid: u32) -> f32 {
    var sum = held_own(Sums(h.x0.share, h.x1.share), near, lid);
    sum += lanes_other(sum, rows_bit(near), lid);
    return sum + lanes_other(sum, 2u * rows_bit(near), lid); //~ alike: off by one
}
