// Eight neighbouring elements of a head: the slice of a thread of attention_split_128.wgsl, for
// heads of 128.
// Needs: k_state_Stored, v_state_Stored, k_state_fetch8, v_state_fetch8, k_state_read8,
// v_state_read8, q, gathered. Gives: Slice, StoredKey, StoredValue, slice_dot, key_stored,
// value_stored, key_open, value_open, slice_of_q, slice_of_gathered.
alias Slice = mat2x4<f32>;
alias StoredKey = k_state_Stored;
alias StoredValue = v_state_Stored;

fn slice_dot(a: Slice, b: Slice) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]);
}

fn key_stored(row: u32, width: u32, eight: u32, lanes: u32) -> StoredKey {
    return k_state_fetch8(row, width, eight);
}

fn value_stored(row: u32, width: u32, eight: u32, lanes: u32) -> StoredValue {
    return v_state_fetch8(row, width, eight);
}

fn key_open(v: StoredKey) -> Slice {
    return k_state_read8(v);
}

fn value_open(v: StoredValue) -> Slice {
    return v_state_read8(v);
}

// A lane's slice of the head at `start`: of q here, of `gathered` below.
fn slice_of_q(start: u32, lane: u32, lanes: u32) -> Slice {
    return Slice(q[start + 2u * lane], q[start + 2u * lane + 1u]);
}

fn slice_of_gathered(start: u32, lane: u32, lanes: u32) -> Slice {
    return Slice(gathered[start + 2u * lane], gathered[start + 2u * lane + 1u]);
}
