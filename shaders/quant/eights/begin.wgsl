// Formats that need nothing before the first load.
fn W_begin(lid: u32) {
}
