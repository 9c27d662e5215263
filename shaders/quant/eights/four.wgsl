// Four neighbouring rows from row r of `rows` on. Rows past the last are the last.
fn W_four(r: u32, rows: u32, k: u32) -> vec4<u32> {
    let last = rows - 1u;
    return vec4<u32>(W_row(min(r, last), k), W_row(min(r + 1u, last), k), W_row(min(r + 2u, last), k), W_row(min(r + 3u, last), k));
}
