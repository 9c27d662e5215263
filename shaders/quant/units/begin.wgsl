// For formats that have no table in workgroup memory.
fn W_begin(lid: u32) {
}
