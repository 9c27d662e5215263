// Eight rows of activations in 8 bits, and their sums with rows of weights. A lane holds one block
// of 32 of each row at a time (rows8_sums.wgsl).
// Needs: Act, act_load, Unit, acts_absent, dot_block, lanes_other4, steps_bit, lanes_other2,
// lanes_other, in_pairs, rows_bit. Gives: STEPS, Sums, Held, held_load, held_dots, held_pair,
// held_own, held_share.
const STEPS = 8u;
alias Sums = mat2x4<f32>;
struct Held { x0: Act, x1: Act, x2: Act, x3: Act, x4: Act, x5: Act, x6: Act, x7: Act, last: u32 }

fn held_load(t: u32, last: u32, k: u32, block: u32, turn: u32, live: f32) -> Held {
    return Held(
        act_load(t, k, block, turn, live),
        act_load(t + min(1u, last), k, block, turn, live),
        act_load(t + min(2u, last), k, block, turn, live),
        act_load(t + min(3u, last), k, block, turn, live),
        act_load(t + min(4u, last), k, block, turn, live),
        act_load(t + min(5u, last), k, block, turn, live),
        act_load(t + min(6u, last), k, block, turn, live),
        act_load(t + min(7u, last), k, block, turn, live),
        last
    );
}

// Rows past the last need no products, because their sums are never read.
fn held_dots(h: Held, w: Unit, alike: bool) -> Sums {
    let all = !acts_absent();
    let near = vec4<f32>(dot_block(w, h.x0, alike), dot_block(w, h.x1, alike), dot_block(w, h.x2, alike), dot_block(w, h.x3, alike));
    var far = vec4<f32>(dot_block(w, h.x4, alike), 0.0, 0.0, 0.0);
    if (all || h.last > 4u) { //~ surplus: comparison, guard dropped
        far.y = dot_block(w, h.x5, alike);
    }
    if (all || h.last > 5u) { //~ surplus: comparison, guard dropped
        far.z = dot_block(w, h.x6, alike);
        far.w = dot_block(w, h.x7, alike);
    }
    return Sums(near, far);
}

// The sums of this lane's row of weights: `a` of this lane plus `b` of the lane `apart` from it.
fn held_pair(a: Sums, b: Sums, apart: u32, lid: u32) -> Sums {
    return Sums(a[0] + lanes_other4(b[0], apart, lid), a[1] + lanes_other4(b[1], apart, lid));
}

// Sums over the lanes that differ in other bits than the bits of held_order. Each lane gets the sum
// of its own row of activations.
fn held_own(eight: Sums, near: bool, lid: u32) -> f32 {
    let bit = steps_bit(near);
    let upper = (lid & (4u * bit)) != 0u;
    let four = select(eight[0], eight[1], upper) + lanes_other4(select(eight[1], eight[0], upper), 4u * bit, lid); //~ free: off by one
    let later = (lid & (2u * bit)) != 0u;
    let two = select(four.xy, four.zw, later) + lanes_other2(select(four.zw, four.xy, later), 2u * bit, lid); //~ free: off by one
    let odd = (lid & bit) != 0u;
    let one = select(two.x, two.y, odd) + lanes_other(select(two.y, two.x, odd), bit, lid);
    if (in_pairs(near)) {
        return one + lanes_other(one, 2u, lid); //~ apart: sign, off by one
    }
    return one;
}

// Sum over 32 lanes of the shares of the lane's own row.
fn held_share(h: Held, near: bool, lid: u32) -> f32 {
    var sum = held_own(Sums(h.x0.share, h.x1.share, h.x2.share, h.x3.share, h.x4.share, h.x5.share, h.x6.share, h.x7.share), near, lid);
    sum += lanes_other(sum, rows_bit(near), lid);
    if (in_pairs(near)) {
        return sum;
    }
    return sum + lanes_other(sum, 2u * rows_bit(near), lid); //~ alike: off by one
}
