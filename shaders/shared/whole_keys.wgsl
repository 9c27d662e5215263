// Where the keys of attention_short_whole.wgsl and attention_short_parts.wgsl are: the slot of the first, and the number of the last, which those past it read
// again.
struct Place { base: u32, first: u32, last: u32, width: u32, eight: u32 }

fn row_of(p: Place, number: u32) -> u32 {
    let slot = p.first + min(number, p.last);
    return p.base + slot - select(0u, params.capacity, slot >= params.capacity);
}
