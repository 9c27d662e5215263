// Which keys a row sees and where they are, in a cache of params.capacity positions for each
// sequence.
// Needs: sequences, params.capacity. Gives: first_key, keys_of, row_of_key.
fn first_key(t: u32) -> u32 {
    return 0u;
}

// The first row of the sequence of row t in the cache.
fn keys_of(t: u32) -> u32 {
    return sequences[t] * params.capacity;
}

fn row_of_key(first: u32, key: u32) -> u32 {
    return first + key % params.capacity;
}
