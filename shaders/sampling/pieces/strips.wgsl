// The largest elements of a row as the list of largest.wgsl, found through the strips of
// sample_scan.wgsl. The bound is the k-th largest of the strips' largest keys. The k largest
// elements of the row reach the bound, and few others do. All of them are in strips whose largest
// key reaches it. The kernel binds `strips` and has params.vocab, params.strips (per row) and
// params.per_thread.
// Needs: strips, params.strips, WG, NAN_KEY, found_slots, best_scratch, found_count, ROOM,
// sort_found, params.per_thread, params.vocab, key_at, found. Gives: strip, list_from_strips.
const LANES = 32u;
// Low bits of a key that the bound leaves out. The bound is lower by that.
const ROUNDED = 12u;
var<workgroup> bins: array<atomic<u32>, 16>;
var<workgroup> bin: vec2<u32>;
var<workgroup> chosen_slots: atomic<u32>;

fn strip(row: u32, s: u32) -> vec4<u32> {
    return strips[row * (params.strips + 1u) + s];
}

// The k-th largest of the strips' keys, rounded down; 0 where there are fewer than k strips. Counts
// find four bits at a time.
fn strip_bound(row: u32, k: u32, lid: u32) -> u32 {
    var key = 0u;
    var rank = k;
    for (var shift = 28u; shift >= ROUNDED; shift -= 4u) { //~ list: off by one
        if (lid < 16u) { //~ surplus: comparison, off by one, guard dropped
            atomicStore(&bins[lid], 0u);
        }
        workgroupBarrier();
        for (var s = lid; s < params.strips; s += WG) { //~ list: comparison
            let digit = (strip(row, s).x ^ key) >> shift; //~ list: component
            if (digit < 16u) {
                atomicAdd(&bins[digit], 1u);
            }
        }
        workgroupBarrier();
        if (lid < 16u) {
            var above = 0u;
            for (var d = lid + 1u; d < 16u; d++) {
                above += atomicLoad(&bins[d]);
            }
            if (above < rank && (above + atomicLoad(&bins[lid]) >= rank || lid == 0u)) { //~ list: comparison
                bin = vec2<u32>(lid, above);
            }
        }
        let reached = workgroupUniformLoad(&bin);
        key |= reached.x << shift;
        rank -= reached.y;
    }
    return key;
}

// Like list_largest: fills `found` with (key, index) of every element of the row at `base` that
// reaches the bound of the k largest, in order, without NaN. Returns their number, which is
// uniform. If it is more than ROOM, the list is incomplete and not sorted.
fn list_from_strips(row: u32, base: u32, k: u32, lid: u32) -> u32 {
    let bound = max(strip_bound(row, k, lid), NAN_KEY + 1u); //~ list: minimum, off by one
    if (lid == 0u) {
        atomicStore(&found_slots, 0u); //~ zeros: off by one
    }
    for (var first = 0u; first < params.strips; first += WG) {
        if (lid == 0u) {
            atomicStore(&chosen_slots, 0u);
        }
        workgroupBarrier();
        let s = first + lid;
        if (s < params.strips && strip(row, s).x >= bound) { //~ dropped: comparison; exit: guard dropped
            best_scratch[atomicAdd(&chosen_slots, 1u)] = vec2<u32>(s, 0u); //~ unused: off by one
        }
        workgroupBarrier();
        list_chosen(base, bound, lid);
        workgroupBarrier();
    }
    if (lid == 0u) {
        found_count = atomicLoad(&found_slots);
    }
    let count = workgroupUniformLoad(&found_count);
    if (count <= ROOM) { //~ list: guard dropped
        sort_found(count, lid);
    }
    return count;
}

// Adds the elements that reach the bound from the strips in `best_scratch`, four elements at a
// time.
fn list_chosen(base: u32, bound: u32, lid: u32) {
    let count = atomicLoad(&chosen_slots) * LANES * params.per_thread;
    for (var e = lid; e < count; e += 4u * WG) { //~ empty: comparison
        let v = vec4<u32>(element(e, count), element(e + WG, count), element(e + 2u * WG, count), element(e + 3u * WG, count));
        let at = base + min(v, vec4<u32>(params.vocab - 1u)); //~ dropped: sign
        let keys = vec4<u32>(key_at(at.x), key_at(at.y), key_at(at.z), key_at(at.w));
        push(keys.x, v.x, bound);
        push(keys.y, v.y, bound);
        push(keys.z, v.z, bound);
        push(keys.w, v.w, bound);
    }
}

// The index in the row of element e of the chosen strips, or params.vocab past their last element.
fn element(e: u32, count: u32) -> u32 {
    let width = LANES * params.per_thread;
    let s = best_scratch[min(e, count - 1u) / width].x; //~ rounded: off by one
    let slice = s / (WG / LANES);
    let turn = slice * params.per_thread + e % width / LANES;
    return select(params.vocab, turn * WG + s % (WG / LANES) * LANES + e % LANES, e < count);
}

fn push(key: u32, v: u32, bound: u32) {
    if (key >= bound && v < params.vocab) {
        let slot = atomicAdd(&found_slots, 1u);
        if (slot < ROOM) { //~ list: comparison, guard dropped
            found[slot] = vec2<u32>(key, v);
        }
    }
}
