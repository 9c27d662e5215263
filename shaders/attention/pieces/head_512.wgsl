// Heads of 512 among 32 threads, twice eight neighbouring elements each (eights_2.wgsl). Together
// these are the two elements of eight rotated pairs.
// Needs: Slice, k, v, wq, wk, lanes_other2, gathered, k_state_store8, v_state_store8,
// k_state_rounded, v_state_rounded. Gives: HEAD, slice_ones, slice_of_k, slice_of_v, slice_of_wq,
// slice_of_wk, slice_turns_at, slice_times, slice_turned, slice_most, slice_leave, key_store,
// value_store, key_rounded, value_rounded.
const HEAD = 512u;

fn slice_ones() -> Slice {
    return Slice(vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0), vec4<f32>(1.0));
}

fn slice_of_k(start: u32, lane: u32) -> Slice {
    let near = start + 2u * lane;
    return Slice(k[near], k[near + 1u], k[near + 64u], k[near + 65u]);
}

fn slice_of_v(start: u32, lane: u32) -> Slice {
    let near = start + 2u * lane;
    return Slice(v[near], v[near + 1u], v[near + 64u], v[near + 65u]);
}

fn slice_of_wq(lane: u32) -> Slice {
    return Slice(wq[2u * lane], wq[2u * lane + 1u], wq[2u * lane + 64u], wq[2u * lane + 65u]);
}

fn slice_of_wk(lane: u32) -> Slice {
    return Slice(wk[2u * lane], wk[2u * lane + 1u], wk[2u * lane + 64u], wk[2u * lane + 65u]);
}

// Where the cosines and sines of a thread's pairs start.
fn slice_turns_at(lane: u32) -> u32 {
    return 4u * lane;
}

fn slice_times(a: Slice, b: Slice) -> Slice {
    return Slice(a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]);
}

fn slice_turned(x: Slice, turns: mat4x4<f32>, lane: u32, lid: u32) -> Slice {
    let cosines = mat2x4<f32>(vec4<f32>(turns[0].xz, turns[1].xz), vec4<f32>(turns[2].xz, turns[3].xz));
    let sines = mat2x4<f32>(vec4<f32>(turns[0].yw, turns[1].yw), vec4<f32>(turns[2].yw, turns[3].yw));
    return Slice(
        x[0] * cosines[0] - x[2] * sines[0], x[1] * cosines[1] - x[3] * sines[1], x[2] * cosines[0] + x[0] * sines[0], x[3] * cosines[1] + x[1] * sines[1]);
}

// The largest magnitudes of the two times 32 elements that four threads have. Every thread calls.
fn slice_most(x: Slice, lid: u32) -> vec2<f32> {
    let near = max(abs(x[0]), abs(x[1]));
    let far = max(abs(x[2]), abs(x[3]));
    var most = vec2<f32>(max(max(near.x, near.y), max(near.z, near.w)), max(max(far.x, far.y), max(far.z, far.w)));
    most = max(most, lanes_other2(most, 1u, lid));
    return max(most, lanes_other2(most, 2u, lid));
}

fn slice_leave(x: Slice, start: u32, lane: u32) {
    gathered[start + 2u * lane] = x[0];
    gathered[start + 2u * lane + 1u] = x[1];
    gathered[start + 2u * lane + 64u] = x[2];
    gathered[start + 2u * lane + 65u] = x[3];
}

fn key_store(row: u32, width: u32, eight: u32, x: Slice, most: vec2<f32>) {
    k_state_store8(row, width, eight, mat2x4<f32>(x[0], x[1]), most.x);
    k_state_store8(row, width, eight + 32u, mat2x4<f32>(x[2], x[3]), most.y);
}

fn value_store(row: u32, width: u32, eight: u32, x: Slice, most: vec2<f32>) {
    v_state_store8(row, width, eight, mat2x4<f32>(x[0], x[1]), most.x);
    v_state_store8(row, width, eight + 32u, mat2x4<f32>(x[2], x[3]), most.y);
}

fn key_rounded(x: Slice, most: vec2<f32>) -> Slice {
    //~ small: component
    return Slice(k_state_rounded(x[0], most.x), k_state_rounded(x[1], most.x), k_state_rounded(x[2], most.y), k_state_rounded(x[3], most.y));
}

fn value_rounded(x: Slice, most: vec2<f32>) -> Slice {
    return Slice(v_state_rounded(x[0], most.x), v_state_rounded(x[1], most.x), v_state_rounded(x[2], most.y), v_state_rounded(x[3], most.y));
}
