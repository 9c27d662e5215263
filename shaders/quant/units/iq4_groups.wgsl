// Groups g and g + 1 of 16 elements of IQ4_NL or IQ4_XS, g even: one unit.
struct W_Raw { held: W_Held }

fn W_raw(row: u32, k: u32, g: u32) -> W_Raw {
    return W_Raw(W_held(row, k, g >> 1u));
}
