// A unit between its load and its staging, for formats that unpack it as they load it.
struct W_Held { unit: Unit }

fn W_held(row: u32, k: u32, u: u32) -> W_Held {
    return W_Held(W_unit(row, k, u));
}

fn W_unit_of(held: W_Held, u: u32) -> Unit {
    return held.unit;
}
