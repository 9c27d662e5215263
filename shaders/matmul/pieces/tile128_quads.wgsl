// 128 slots of 32 columns of weights that 128 threads stage for cooperative matrices, in any
// format. A thread stages eight columns of four slots, so that four neighbouring threads read
// neighbouring columns. Every quad is dequantized by itself.
// Needs: w_row, slot_row, slot_column, w_load4, slot_live, ws, slot_at. Gives: Ahead, begin,
// ahead_load, ahead_store.
struct Ahead { a: mat2x4<f16>, b: mat2x4<f16>, c: mat2x4<f16>, d: mat2x4<f16> }

fn begin(lid: u32) {
}

// The first slot of the thread whose number among the slots is `slot`.
fn first_slot(slot: u32) -> u32 {
    return slot - (slot & 127u) + ((slot & 127u) >> 2u);
}

fn ahead_eight(first: u32, slot: u32, k: u32, k0: u32, eight: u32) -> mat2x4<f16> {
    let row = w_row(slot_row(first, slot), k);
    let quad = (slot_column(k0, slot) >> 2u) + 2u * eight;
    return mat2x4<f16>(vec4<f16>(w_load4(row, k, quad)), vec4<f16>(w_load4(row, k, quad + 1u)));
}

// The slots of columns k0.. of the rows from `first` on.
fn ahead_load(first: u32, k: u32, k0: u32, slot: u32) -> Ahead {
    let s = first_slot(slot);
    let eight = slot & 3u;
    return Ahead(
        ahead_eight(first, s, k, k0, eight), ahead_eight(first, s + 32u, k, k0, eight),
        ahead_eight(first, s + 64u, k, k0, eight), ahead_eight(first, s + 96u, k, k0, eight));
}

fn eight_store(v: mat2x4<f16>, k0: u32, slot: u32, eight: u32) {
    let live = vec4<bool>(slot_live(k0, slot));
    ws[slot_at(slot) + eight] = mat2x4<f16>(select(vec4<f16>(), v[0], live), select(vec4<f16>(), v[1], live));
}

fn ahead_store(v: Ahead, k0: u32, slot: u32) {
    let s = first_slot(slot);
    let eight = slot & 3u;
    eight_store(v.a, k0, s, eight);
    eight_store(v.b, k0, s + 32u, eight);
    eight_store(v.c, k0, s + 64u, eight);
    eight_store(v.d, k0, s + 96u, eight);
}
