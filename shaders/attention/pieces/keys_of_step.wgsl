// Which keys a row sees and where they are, when the keys are the rows of the step. Keys have the
// numbers of their rows; sequences[t] is the first row of row t's document.
// Needs: sequences. Gives: first_key, keys_of, start_of_keys, row_of_key.
fn first_key(t: u32) -> u32 {
    return sequences[t];
}

fn keys_of(t: u32) -> u32 {
    return 0u;
}

fn start_of_keys(key: u32) -> u32 {
    return key;
}

fn row_of_key(first: u32, start: u32, i: u32) -> u32 {
    return first + start + i;
}
