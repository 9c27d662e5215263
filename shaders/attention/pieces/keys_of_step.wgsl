// Which keys a row sees, and where they are, among the rows of the step: keys are numbered as rows are, and sequences[t] is the first of row t's document.
// Needs: sequences. Gives: first_key, keys_of, row_of_key.
fn first_key(t: u32) -> u32 {
    return sequences[t];
}

fn keys_of(t: u32) -> u32 {
    return 0u;
}

fn row_of_key(first: u32, key: u32) -> u32 {
    return first + key;
}
