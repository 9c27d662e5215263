// Twice eight neighbouring elements of a head, `lanes` eights apart: the slice of a thread of
// attention_split_512.wgsl, for heads of 512.
// Needs: k_state_Stored, k_state_fetch8, k_state_read8, q, gathered. Gives: Slice, StoredKey,
// slice_dot, key_stored, key_open, slice_of_q, slice_of_gathered.
alias Slice = mat4x4<f32>;
struct StoredKey { a: k_state_Stored, b: k_state_Stored }

fn slice_dot(a: Slice, b: Slice) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]) + (dot(a[2], b[2]) + dot(a[3], b[3]));
}

fn key_stored(row: u32, width: u32, eight: u32, lanes: u32) -> StoredKey {
    return StoredKey(k_state_fetch8(row, width, eight), k_state_fetch8(row, width, eight + lanes));
}

fn key_open(v: StoredKey) -> Slice {
    let a = k_state_read8(v.a);
    let b = k_state_read8(v.b);
    return Slice(a[0], a[1], b[0], b[1]);
}

// A lane's slice of the head at `start`: of q here, of `gathered` below.
fn slice_of_q(start: u32, lane: u32, lanes: u32) -> Slice {
    let near = start + 2u * lane;
    let far = near + 2u * lanes;
    return Slice(q[near], q[near + 1u], q[far], q[far + 1u]);
}

fn slice_of_gathered(start: u32, lane: u32, lanes: u32) -> Slice {
    let near = start + 2u * lane;
    let far = near + 2u * lanes;
    return Slice(gathered[near], gathered[near + 1u], gathered[far], gathered[far + 1u]);
}
