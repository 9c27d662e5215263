// A slot of 32 columns of weights that a workgroup stages for cooperative matrices, in a format
// with units. A thread stages whole slots, so scales of 32 columns are unpacked once.
// Needs: w_Raw, w_begin, w_store, slot_at, slot_column, slot_live. Gives: Ahead, begin,
// ahead_store.
alias Ahead = w_Raw;

fn begin(lid: u32) {
    w_begin(lid);
}

fn ahead_store(raw: Ahead, k0: u32, slot: u32) {
    w_store(slot_at(slot), raw, slot_column(k0, slot) >> 4u, slot_live(k0, slot));
}
