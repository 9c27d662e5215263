// The slots of the weights that tile128_loop.wgsl stages: 32 columns of a row. A tile has 64
// columns of 16 GROUPS rows, so each of 128 threads stages one slot or two.
// Needs: GROUPS, params.k. Gives: WG, COLUMNS, DEPTH, SLOTS, PITCH, ws, slot_column, slot_at,
// slot_live.
const WG = 128u;
const COLUMNS = 16u * GROUPS;
const DEPTH = 64u;
// Slots of a thread.
const SLOTS = COLUMNS * DEPTH / 4096u;
// Row pitch in eights of columns. It is odd, so that eight rows start on different banks.
const PITCH = DEPTH / 8u + 1u;
var<workgroup> ws: array<mat2x4<f16>, COLUMNS * PITCH>;

fn slot_column(k0: u32, slot: u32) -> u32 {
    return min(k0 + 32u * (slot / COLUMNS), params.k - 32u); //~ unowned: sign; rounded: off by one
}

fn slot_at(slot: u32) -> u32 {
    return slot % COLUMNS * PITCH + 4u * (slot / COLUMNS);
}

// Whether the row has these columns. Slots past its end are staged as zeros.
fn slot_live(k0: u32, slot: u32) -> bool {
    return k0 + 32u * (slot / COLUMNS) < params.k; //~ rounded: off by one
}
