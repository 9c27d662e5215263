// The blocks of four rows of Q6_K for one thread (rows.wgsl), for devices where 32 neighbouring
// threads share a subgroup. Of the two pieces of 16 low nibbles a thread loads one. It gets the
// other from its neighbour, whose a is its b and whose c is its d. Four threads share the two
// pieces of high bits; each thread loads one piece of two rows. Each thread loads the factor of a
// superblock of its first row.
struct W_Ab { a: vec4<u32>, b: vec4<u32>, of_a: vec4<u32>, of_b: vec4<u32>, scales: vec4<u32>, factor: u32 }
struct W_Cd { c: vec4<u32>, d: vec4<u32> }

const W_near = true;

// Blocks that share pieces of low nibbles are two apart. Neighbouring threads have these blocks.
fn W_lane(lid: u32) -> u32 {
    return (lid & ~3u) | ((lid & 1u) << 1u) | ((lid >> 1u) & 1u);
}

fn W_piece(block: u32) -> u32 {
    return (block & ~3u) + 2u * (block & 1u) + ((block >> 1u) & 1u);
}

fn W_ab(r: u32, final_row: u32, k: u32, block: u32, lid: u32) -> W_Ab {
    let own = held_order(W_near, lid);
    let nb = k >> 8u;
    let a = W_row(min(r + own, final_row), k);
    let b = W_row(min(r + (own ^ 1u), final_row), k);
    let c = W_row(min(r + (own ^ 2u), final_row), k);
    let d = W_row(min(r + (own ^ 3u), final_row), k);
    let piece = W_piece(block);
    let upper = 8u * nb + 2u * (block >> 2u) + ((block >> 1u) & 1u);
    let of_block = 48u * nb + (block >> 1u);
    let scales = vec4<u32>(W_word(a + of_block), W_word(b + of_block), W_word(c + of_block), W_word(d + of_block));
    return W_Ab(W[(a >> 2u) + piece], W[(b >> 2u) + piece], W[(a >> 2u) + upper], W[(b >> 2u) + upper], scales, W_word(a + 52u * nb + (block >> 4u)));
}

fn W_cd(r: u32, final_row: u32, k: u32, block: u32, lid: u32) -> W_Cd {
    let own = held_order(W_near, lid);
    let piece = W_piece(block);
    let c = W_row(min(r + (own ^ 2u), final_row), k) >> 2u;
    let d = W_row(min(r + (own ^ 3u), final_row), k) >> 2u;
    return W_Cd(W[c + piece], W[d + piece]);
}

// A quarter of d.
fn W_factor(ab: W_Ab, block: u32) -> f32 {
    return 0.25 * unpack2x16float(ab.factor >> ((block & 8u) << 1u)).x;
}

// Bytes 4 (q - 32): the nibble in bits 2 to 5, the two high bits in bits 6 and 7, the sign bit
// flipped.
fn W_quads(nibbles: vec4<u32>, high: vec4<u32>, block: u32) -> vec4<u32> {
    let upper = (block >> 1u) & 1u;
    let right = vec4<u32>(select(30u, 2u, upper == 1u));
    let turned = (nibbles >> right) | (nibbles << (vec4<u32>(32u) - right));
    let up = vec4<u32>(6u - 4u * upper - 2u * (block & 1u));
    return ((turned & vec4<u32>(0x3c3c3c3cu)) ^ vec4<u32>(0x80808080u)) ^ ((high << up) & vec4<u32>(0xc0c0c0c0u));
}

fn W_shared(own: vec4<u32>, beside: vec4<u32>, own_high: vec4<u32>, other_high: vec4<u32>, scales: u32, factor: f32, block: u32) -> Unit {
    let other = subgroupShuffleXor(beside, 1u);
    // Of the word's four signed bytes, two belong to the block. The byte of the thread's own piece
    // comes first.
    let upper = 8u * ((block >> 1u) & 1u);
    let up = 24u - 16u * (block & 1u); //~ bits: sign
    let scale = vec2<i32>(bitcast<i32>(scales << (up - upper)), bitcast<i32>(scales << (up - 8u + upper))) >> vec2<u32>(24u);
    return Unit(W_quads(own, own_high, block), W_quads(other, other_high, block), factor * vec2<f32>(scale), vec2<f32>(0.0));
}

fn W_of_a(ab: W_Ab, k: u32, block: u32) -> Unit {
    return W_shared(ab.a, ab.b, ab.of_a, subgroupShuffleXor(ab.of_b, 1u), ab.scales.x, W_factor(ab, block), block);
}

fn W_of_b(ab: W_Ab, k: u32, block: u32) -> Unit {
    return W_shared(ab.b, ab.a, ab.of_b, subgroupShuffleXor(ab.of_a, 1u), ab.scales.y, subgroupShuffleXor(W_factor(ab, block), 1u), block);
}

fn W_of_c(ab: W_Ab, cd: W_Cd, k: u32, block: u32) -> Unit {
    let factor = subgroupShuffleXor(W_factor(ab, block), 2u);
    return W_shared(cd.c, cd.d, subgroupShuffleXor(ab.of_a, 2u), subgroupShuffleXor(ab.of_b, 3u), ab.scales.z, factor, block);
}

fn W_of_d(ab: W_Ab, cd: W_Cd, k: u32, block: u32) -> Unit {
    let factor = subgroupShuffleXor(W_factor(ab, block), 3u);
    return W_shared(cd.d, cd.c, subgroupShuffleXor(ab.of_b, 2u), subgroupShuffleXor(ab.of_a, 3u), ab.scales.w, factor, block);
}
