// Which keys a row sees and where they are, in a cache of params.capacity positions for each
// sequence.
// Needs: sequences, params.capacity. Gives: first_key, keys_of, start_of_keys,
// row_of_key.
fn first_key(t: u32) -> u32 {
    return 0u;
}

// The first row of the sequence of row t in the cache.
fn keys_of(t: u32) -> u32 {
    return sequences[t] * params.capacity;
}

// The position of a key in the ring of its sequence. Later keys have later positions; after the
// last position comes position 0.
fn start_of_keys(key: u32) -> u32 {
    return key % params.capacity;
}

// The row of the i-th key from position `start` on; i is below params.capacity. `first` is the
// first row of the sequence.
fn row_of_key(first: u32, start: u32, i: u32) -> u32 {
    let position = start + i;
    return first + position - select(0u, params.capacity, position >= params.capacity);
}
