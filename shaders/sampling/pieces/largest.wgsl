// The largest elements of a row as a sorted list in workgroup memory, found in one sweep. The row
// is divided into 2 WG strips. The bound is the k-th largest of the strips' largest keys. The k
// largest elements of the row reach the bound, and few others do. The kernel defines key_at(i), the
// key of element i of its input.
// Needs: NAN_KEY, WG, key_at, best_scratch, precedes. Gives: ROOM, MOST, found, found_slots,
// found_count, strip_keys, list_largest, sort_found.
const ROOM = 1024u;
const MOST = 256u;
var<workgroup> found: array<vec2<u32>, ROOM>;
var<workgroup> found_slots: atomic<u32>;
var<workgroup> found_count: u32;
var<workgroup> found_bound: u32;

// The largest keys of this thread's two strips: every 2 WG-th element, from lid and from lid + WG
// on.
fn strip_keys(base: u32, n: u32, lid: u32) -> vec2<u32> {
    var strip = vec2<u32>(NAN_KEY);
    for (var i = lid; i < n; i += 2u * WG) {
        strip.x = max(strip.x, key_at(base + i)); //~ list: minimum, component
        if (i + WG < n) {
            strip.y = max(strip.y, key_at(base + i + WG)); //~ list: minimum, component
        }
    }
    return strip;
}

// Fills `found` with (key, index) of every element that reaches the bound of the k largest, in
// order, without NaN; k <= MOST. Returns their number, which is uniform. If it is more than ROOM,
// the list is incomplete and not sorted. It is less than k only if the row has no more elements.
fn list_largest(base: u32, n: u32, k: u32, strip: vec2<u32>, lid: u32) -> u32 {
    if (lid == 0u) {
        found_bound = NAN_KEY;
        atomicStore(&found_slots, 0u);
    }
    // All elements of a short row are listed.
    if (n > WG) {
        rank_strips(k, strip, lid);
    }
    workgroupBarrier();
    let bound = max(found_bound, NAN_KEY + 1u); //~ list: off by one
    for (var i = lid; i < n; i += WG) {
        let key = key_at(base + i);
        if (key >= bound) {
            let slot = atomicAdd(&found_slots, 1u);
            if (slot < ROOM) { //~ list: comparison, guard dropped
                found[slot] = vec2<u32>(key, i);
            }
        }
    }
    workgroupBarrier();
    if (lid == 0u) {
        found_count = atomicLoad(&found_slots);
    }
    let count = workgroupUniformLoad(&found_count);
    if (count <= ROOM) { //~ list: guard dropped
        sort_found(count, lid);
    }
    return count;
}

// Makes the k-th largest of the strips' keys the bound. Strips are ranked by key, then by number,
// like elements.
fn rank_strips(k: u32, strip: vec2<u32>, lid: u32) {
    best_scratch[lid] = strip;
    workgroupBarrier();
    let mine_x = vec2<u32>(strip.x, 2u * lid);
    let mine_y = vec2<u32>(strip.y, 2u * lid + 1u); //~ list: sign
    var rank = vec2<u32>(0u);
    for (var i = 0u; i < WG; i++) { //~ list: comparison, off by one
        let x = vec2<u32>(best_scratch[i].x, 2u * i); //~ list: off by one
        let y = vec2<u32>(best_scratch[i].y, 2u * i + 1u); //~ list: component, off by one
        rank.x += u32(precedes(x, mine_x)) + u32(precedes(y, mine_x)); //~ list: sign
        rank.y += u32(precedes(x, mine_y)) + u32(precedes(y, mine_y)); //~ list: sign
    }
    if (rank.x == k - 1u) { //~ list: sign
        found_bound = strip.x;
    } else if (rank.y == k - 1u) { //~ list: sign, component
        found_bound = strip.y;
    }
}

// Moves every element to the place of its rank. So the order of sums along the list does not depend
// on timing.
fn sort_found(count: u32, lid: u32) {
    var mine = array<vec2<u32>, ROOM / WG>();
    var places = array<u32, ROOM / WG>();
    for (var j = 0u; j < ROOM / WG && lid + j * WG < count; j++) { //~ surplus: comparison
        mine[j] = found[lid + j * WG];
        for (var i = 0u; i < count; i++) { //~ zeros: comparison
            places[j] += u32(precedes(found[i], mine[j]));
        }
    }
    workgroupBarrier();
    for (var j = 0u; j < ROOM / WG && lid + j * WG < count; j++) { //~ never: comparison
        found[places[j]] = mine[j];
    }
    workgroupBarrier();
}
