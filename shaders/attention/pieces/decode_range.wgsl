// Where the keys of attention_decode_256.wgsl and attention_decode_window.wgsl are: `first` is the
// slot of the first key, `last` the number of the last key. Reads past the last key read it again.
// Needs: params.capacity. Gives: Place, row_of.
struct Place { base: u32, first: u32, last: u32, width: u32, eight: u32 }

fn row_of(p: Place, number: u32) -> u32 {
    let slot = p.first + min(number, p.last);
    return p.base + slot - select(0u, params.capacity, slot >= params.capacity);
}
