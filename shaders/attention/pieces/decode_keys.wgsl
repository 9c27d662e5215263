// Stored keys and values of attention_decode_128.wgsl, attention_decode_rows.wgsl and
// attention_decode_rows_f16.wgsl. A thread has four at a time, GROUPS apart.
// Needs: k_state_Stored, v_state_Stored, k_state_fetch8, GROUPS, v_state_fetch8. Gives: Keys,
// Values, keys_of, values_of, dot8.
struct Keys { a: k_state_Stored, b: k_state_Stored, c: k_state_Stored, d: k_state_Stored }
struct Values { a: v_state_Stored, b: v_state_Stored, c: v_state_Stored, d: v_state_Stored }

// `last` is the last row that exists. Threads past it read it again. `eight` is the index of this
// thread's eight elements in a row.
fn keys_of(first: u32, last: u32, width: u32, eight: u32) -> Keys {
    return Keys(
        k_state_fetch8(min(first, last), width, eight), k_state_fetch8(min(first + GROUPS, last), width, eight),
        k_state_fetch8(min(first + 2u * GROUPS, last), width, eight), k_state_fetch8(min(first + 3u * GROUPS, last), width, eight));
}

fn values_of(first: u32, last: u32, width: u32, eight: u32) -> Values {
    return Values(
        v_state_fetch8(min(first, last), width, eight), v_state_fetch8(min(first + GROUPS, last), width, eight),
        v_state_fetch8(min(first + 2u * GROUPS, last), width, eight), v_state_fetch8(min(first + 3u * GROUPS, last), width, eight));
}

fn dot8(a: mat2x4<f32>, b: mat2x4<f32>) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]);
}
