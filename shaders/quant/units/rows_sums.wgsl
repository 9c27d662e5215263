// The sums of a workgroup for a binding that is read in rows (matmul/pieces/rows8_sums.wgsl).
// Threads load the blocks of their next rows before they multiply.
struct W_Ahead { ab: W_Ab, cd: W_Cd }

// The block of a thread, of TEAM blocks from `first` on.
fn W_block(k: u32, first: u32, lid: u32) -> u32 {
    return min(first + W_lane(lid % TEAM), (k >> 5u) - 1u); //~ apart: sign, product, minimum, shift, off by one
}

// The first rows, from r on, of the blocks `first`...
fn W_ahead(r: u32, final_row: u32, k: u32, first: u32, lid: u32) -> W_Ahead {
    let block = W_block(k, first, lid);
    return W_Ahead(W_ab(r, final_row, k, block, lid), W_cd(r, final_row, k, block, lid));
}

// Adds the products of the held blocks with `count` rows of W, from r0 on, to the sums of the
// workgroup's rows from `to` on. `loaded` has the first rows. Returns the first rows of the blocks
// that follow.
fn W_add(held: Held, loaded: W_Ahead, r0: u32, final_row: u32, count: u32, to: u32, k: u32, first: u32, lid: u32) -> W_Ahead {
    let block = W_block(k, first, lid);
    let pairs = in_pairs(W_near);
    let step = select(4u, 2u, pairs); //~ apart: off by one
    var ab = loaded.ab;
    var cd = loaded.cd;
    for (var r = 0u; r < count; r += step) {
        // Loads the next rows, or the first rows of the next blocks.
        let ends = r + step >= count;
        let next = r0 + select(r + step, 0u, ends);
        let there = select(block, W_block(k, first + TEAM, lid), ends); //~ apart: sign, arms swapped
        let now = ab;
        if (pairs) { //~ twice: guard dropped
            ab = W_ab(next, final_row, k, there, lid);
        }
        let a = held_dots(held, W_of_a(now, k, block), W_alike);
        let b = held_dots(held, W_of_b(now, k, block), W_alike);
        var sums = held_pair(a, b, rows_bit(W_near), lid);
        if (!pairs) { //~ apart: guard dropped
            ab = W_ab(next, final_row, k, there, lid);
            let c = held_dots(held, W_of_c(now, cd, k, block), W_alike);
            let d = held_dots(held, W_of_d(now, cd, k, block), W_alike);
            sums = held_pair(sums, held_pair(c, d, rows_bit(W_near), lid), 2u * rows_bit(W_near), lid);
            cd = W_cd(next, final_row, k, there, lid);
        }
        rows8_add(first, to + r, held_own(sums, W_near, lid), W_near, lid);
    }
    return W_Ahead(ab, cd);
}

// The held blocks of the rows of activations from t0 on, whose shares are added. `last` is the
// index of the last row, counted from t0.
fn W_hold(t0: u32, last: u32, k: u32, first: u32, lid: u32) -> Held {
    let live = select(0.0, 1.0, first + W_lane(lid % TEAM) < (k >> 5u));
    let held = held_load(t0, last, k, W_block(k, first, lid), select(0u, lid & 1u, W_near), live); //~ apart: mask
    rows8_add_share(first, held_share(held, W_near, lid), W_near, lid);
    return held;
}

// The products of the rows of activations t0 .. t0 + last with `count` rows of W, from r0 on. The
// activations are loaded once.
fn W_rows8(t0: u32, last: u32, r0: u32, final_row: u32, count: u32, k: u32, lid: u32) {
    let blocks = k >> 5u;
    var ahead = W_ahead(r0, final_row, k, 0u, lid); //~ apart: off by one
    for (var first = 0u; first < blocks; first += TEAM) {
        let held = W_hold(t0, last, k, first, lid);
        ahead = W_add(held, ahead, r0, final_row, count, 0u, k, first, lid);
    }
}
