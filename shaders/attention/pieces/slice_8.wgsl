// Eight neighbouring elements of a head: the slice of a thread of attention_split.wgsl, for heads
// of up to 256.
// Needs: q, k_state_load4, v_state_load4, groups_add4, gathered, WG. Gives: SLICE_QUADS, Slice,
// slice_dot, slice_of_q, slice_of_k, slice_of_v, slice_gather, slice_column.
const SLICE_QUADS = 2u;
alias Slice = mat2x4<f32>;

fn slice_dot(a: Slice, b: Slice) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]);
}

fn slice_of_q(start: u32, lane: u32, lanes: u32) -> Slice {
    return Slice(q[start + 2u * lane], q[start + 2u * lane + 1u]);
}

fn slice_of_k(row: u32, width: u32, start: u32, lane: u32, lanes: u32) -> Slice {
    return Slice(k_state_load4(row, width, start + 2u * lane), k_state_load4(row, width, start + 2u * lane + 1u));
}

fn slice_of_v(row: u32, width: u32, start: u32, lane: u32, lanes: u32) -> Slice {
    return Slice(v_state_load4(row, width, start + 2u * lane), v_state_load4(row, width, start + 2u * lane + 1u));
}

// Puts the sums over the groups of a neighbourhood into `gathered`.
fn slice_gather(v: Slice, first: bool, lanes: u32, lid: u32) {
    let a = groups_add4(v[0], lanes);
    let b = groups_add4(v[1], lanes);
    if (first) { //~ surplus: guard dropped
        gathered[lid] = a;
        gathered[WG + lid] = b;
    }
}

// Where `gathered` holds quad `quad` of the first group.
fn slice_column(quad: u32, lanes: u32) -> u32 {
    return (quad & 1u) * WG + (quad >> 1u);
}
