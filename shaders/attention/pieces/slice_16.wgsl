// Sixteen elements of a head, in quads `lanes` apart: the slice of a thread of
// attention_split.wgsl, for heads of more than 256.
// Needs: q, k_state_load4, v_state_load4, groups_add4, gathered, WG. Gives: SLICE_QUADS, Slice,
// slice_dot, slice_of_q, slice_of_k, slice_of_v, slice_gather, slice_column.
const SLICE_QUADS = 4u;
alias Slice = mat4x4<f32>;

fn slice_dot(a: Slice, b: Slice) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + (dot(a[2], b[2]) + dot(a[3], b[3]));
}

fn slice_of_q(start: u32, lane: u32, lanes: u32) -> Slice {
    let at = start + lane;
    return Slice(q[at], q[at + lanes], q[at + 2u * lanes], q[at + 3u * lanes]);
}

fn slice_of_k(row: u32, width: u32, start: u32, lane: u32, lanes: u32) -> Slice {
    let at = start + lane;
    return Slice(
        k_state_load4(row, width, at), k_state_load4(row, width, at + lanes),
        k_state_load4(row, width, at + 2u * lanes), k_state_load4(row, width, at + 3u * lanes));
}

fn slice_of_v(row: u32, width: u32, start: u32, lane: u32, lanes: u32) -> Slice {
    let at = start + lane;
    return Slice(
        v_state_load4(row, width, at), v_state_load4(row, width, at + lanes),
        v_state_load4(row, width, at + 2u * lanes), v_state_load4(row, width, at + 3u * lanes));
}

// Puts the sums over the groups of a neighbourhood into `gathered`.
fn slice_gather(v: Slice, first: bool, lanes: u32, lid: u32) {
    let a = groups_add4(v[0], lanes);
    let b = groups_add4(v[1], lanes);
    let c = groups_add4(v[2], lanes);
    let d = groups_add4(v[3], lanes);
    if (first) { //~ surplus: guard dropped
        gathered[lid] = a;
        gathered[WG + lid] = b;
        gathered[2u * WG + lid] = c;
        gathered[3u * WG + lid] = d;
    }
}

// Where `gathered` holds quad `quad` of the first group.
fn slice_column(quad: u32, lanes: u32) -> u32 {
    return quad / lanes * WG + quad % lanes;
}
