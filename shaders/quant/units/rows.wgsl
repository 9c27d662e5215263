// Blocks of four rows for one thread: of rows r + own, r + (own ^ 1), r + (own ^ 2) and r + (own ^
// 3), with own = held_order. A block is loaded when it is needed.
struct W_Ab { a: u32, b: u32 }
struct W_Cd { c: u32, d: u32 }

// Whether neighbouring threads share loads, and odd threads use the second halves of their blocks
// first.
const W_near = false;

// The number of the block of a thread.
fn W_lane(lid: u32) -> u32 {
    return lid;
}

fn W_ab(r: u32, final_row: u32, k: u32, block: u32, lid: u32) -> W_Ab {
    let own = held_order(W_near, lid);
    return W_Ab(W_row(min(r + own, final_row), k), W_row(min(r + (own ^ 1u), final_row), k));
}

fn W_cd(r: u32, final_row: u32, k: u32, block: u32, lid: u32) -> W_Cd {
    let own = held_order(W_near, lid);
    return W_Cd(W_row(min(r + (own ^ 2u), final_row), k), W_row(min(r + (own ^ 3u), final_row), k));
}

fn W_of_a(ab: W_Ab, k: u32, block: u32) -> Unit {
    return W_block_of(W_raw(ab.a, k, 2u * block), block);
}

fn W_of_b(ab: W_Ab, k: u32, block: u32) -> Unit {
    return W_block_of(W_raw(ab.b, k, 2u * block), block);
}

fn W_of_c(ab: W_Ab, cd: W_Cd, k: u32, block: u32) -> Unit {
    return W_block_of(W_raw(cd.c, k, 2u * block), block);
}

fn W_of_d(ab: W_Ab, cd: W_Cd, k: u32, block: u32) -> Unit {
    return W_block_of(W_raw(cd.d, k, 2u * block), block);
}
