// Order of floats by integer keys, and the best element of a workgroup of WG threads. Integer
// comparisons are exact on every driver, unlike float comparisons with NaN.
// Needs: WG. Gives: NAN_KEY, order_key, key_value, precedes, first_of, best_scratch, best_of.
const NAN_KEY = 0u;

// Greater floats have greater keys. Both zeros have the same key, NaN has the lowest.
fn order_key(bits: u32) -> u32 {
    let magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return NAN_KEY;
    }
    return select(bits | 0x80000000u, ~bits, bits > 0x80000000u);
}

// The float of a key, except NAN_KEY.
fn key_value(key: u32) -> f32 {
    return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u));
}

// Whether the element a = (key, index) comes before b: larger, or equal and earlier.
fn precedes(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y < b.y);
}

fn first_of(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(a, b, precedes(b, a));
}

var<workgroup> best_scratch: array<vec2<u32>, WG>;

// The first element in order, of one element per thread. Every thread calls and gets the result. On
// return the scratch is free again.
fn best_of(mine: vec2<u32>, lid: u32) -> vec2<u32> {
    best_scratch[lid] = mine;
    workgroupBarrier();
    for (var half = WG / 2u; half > 0u; half = half / 2u) {
        if (lid < half && precedes(best_scratch[lid + half], best_scratch[lid])) { //~ surplus: comparison
            best_scratch[lid] = best_scratch[lid + half];
        }
        workgroupBarrier();
    }
    let best = best_scratch[0];
    workgroupBarrier(); //~ rare: barrier dropped
    return best;
}
