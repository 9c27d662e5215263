// Heads of 256 among 32 threads, eight neighbouring elements each (eights_1.wgsl). The other
// element of a rotated pair is 16 threads away.
// Needs: Slice, k, v, wq, wk, lanes_other4, lanes_other, gathered, k_state_store8, v_state_store8,
// k_state_rounded, v_state_rounded. Gives: HEAD, slice_ones, slice_of_k, slice_of_v, slice_of_wq,
// slice_of_wk, slice_turns_at, slice_times, slice_turned, slice_most, slice_leave, key_store,
// value_store, key_rounded, value_rounded.
const HEAD = 256u;

fn slice_ones() -> Slice {
    return Slice(vec4<f32>(1.0), vec4<f32>(1.0));
}

fn slice_of_k(start: u32, lane: u32) -> Slice {
    return Slice(k[start + 2u * lane], k[start + 2u * lane + 1u]);
}

fn slice_of_v(start: u32, lane: u32) -> Slice {
    return Slice(v[start + 2u * lane], v[start + 2u * lane + 1u]);
}

fn slice_of_wq(lane: u32) -> Slice {
    return Slice(wq[2u * lane], wq[2u * lane + 1u]);
}

fn slice_of_wk(lane: u32) -> Slice {
    return Slice(wk[2u * lane], wk[2u * lane + 1u]);
}

// Where the cosines and sines of a thread's pairs start.
fn slice_turns_at(lane: u32) -> u32 {
    return 4u * (lane % 16u);
}

fn slice_times(a: Slice, b: Slice) -> Slice {
    return Slice(a[0] * b[0], a[1] * b[1]);
}

// Rotates the head. Every thread calls.
fn slice_turned(x: Slice, turns: mat4x4<f32>, lane: u32, lid: u32) -> Slice {
    let across = Slice(lanes_other4(x[0], 16u, lid), lanes_other4(x[1], 16u, lid)) * select(-1.0, 1.0, lane >= 16u);
    return Slice(
        x[0] * vec4<f32>(turns[0].xz, turns[1].xz) + across[0] * vec4<f32>(turns[0].yw, turns[1].yw),
        x[1] * vec4<f32>(turns[2].xz, turns[3].xz) + across[1] * vec4<f32>(turns[2].yw, turns[3].yw));
}

// The largest magnitude of the 32 elements that four threads have.
fn slice_most(x: Slice, lid: u32) -> vec2<f32> {
    let four = max(abs(x[0]), abs(x[1]));
    var most = max(max(four.x, four.y), max(four.z, four.w));
    most = max(most, lanes_other(most, 1u, lid));
    return vec2<f32>(max(most, lanes_other(most, 2u, lid)));
}

fn slice_leave(x: Slice, start: u32, lane: u32) {
    gathered[start + 2u * lane] = x[0];
    gathered[start + 2u * lane + 1u] = x[1];
}

fn key_store(row: u32, width: u32, eight: u32, x: Slice, most: vec2<f32>) {
    k_state_store8(row, width, eight, x, most.x); //~ alike: component
}

fn value_store(row: u32, width: u32, eight: u32, x: Slice, most: vec2<f32>) {
    v_state_store8(row, width, eight, x, most.x); //~ alike: component
}

fn key_rounded(x: Slice, most: vec2<f32>) -> Slice {
    return Slice(k_state_rounded(x[0], most.x), k_state_rounded(x[1], most.x)); //~ alike: component
}

fn value_rounded(x: Slice, most: vec2<f32>) -> Slice {
    return Slice(v_state_rounded(x[0], most.x), v_state_rounded(x[1], most.x)); //~ alike: component
}
