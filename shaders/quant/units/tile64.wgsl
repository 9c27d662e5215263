// Tiles of 16 BANDS rows of activations (matmul_tile64.wgsl) with weights in a format with units.

// Stages halves of units of two rows of a group, after all threads have read the group before it.
fn W_stage(at: u32, a: W_Ready, b: W_Ready, unit: u32, late: bool) {
    subgroupBarrier();
    ws[at] = W_eight(a, unit, late, false);
    ws[at + 1u] = W_eight(a, unit, late, true);
    ws[at + 8u * PITCH] = W_eight(b, unit, late, false);
    ws[at + 8u * PITCH + 1u] = W_eight(b, unit, late, true);
    subgroupBarrier();
}

fn W_slabs_of(first: u32, last: u32, late: bool, tile: u32) -> Slabs {
    let a = W_halves(first);
    let b = W_halves(min(first + 1u, last));
    let c = W_halves(min(first + 2u, last));
    let d = W_halves(min(first + 3u, last));
    let at = slabs_at(select(vec4<u32>(a.x, b.x, c.x, d.x), vec4<u32>(a.y, b.y, c.y, d.y), late), tile);
    return Slabs(band_of(at, 0u), band_of(at, 1u), band_of(at, 2u), band_of(at, 3u), band_of(at, 4u), band_of(at, 5u)); //~ clamped: off by one
}

// Units of four rows.
struct W_Four { a: W_Held, b: W_Held, c: W_Held, d: W_Held }

// Makes the results of one tile of rows of x and the 16 GROUPS rows of weights from r0 on, of
// weight `which`.
fn W_tile64(r0: u32, tile: u32, which: u32, lid: u32, subgroup: u32) {
    W_begin(lid);
    let k = params.k;
    let last = (k >> 5u) - 1u;
    let lane = lid & (UNITS - 1u);
    let own = (lid >> 2u) & 7u;
    let base = subgroup * (TILE * PITCH);
    let to = base + own * PITCH + 2u * lane;
    let row = vec4<u32>(r0 + own, r0 + own + 8u, r0 + own + 16u, r0 + own + 24u);
    let at = min(row, vec4<u32>(rows_of(which) - 1u)); //~ unowned: sign
    let rows = vec4<u32>(W_row(at.x, k), W_row(at.y, k), W_row(at.z, k), W_row(at.w, k));
    var sums_0 = Sums();
    var sums_1 = Sums();
    var held = W_four_of(rows, k, min(UNITS * subgroup + lane, last), which);
    for (var first = UNITS * subgroup; first <= last; first += UNITS * PARTS) {
        let live = select(0.0, 1.0, first + lane <= last);
        let unit = min(first + lane, last);
        if (!AHEAD) { //~ twice: guard dropped
            held = W_four_of(rows, k, unit, which);
        }
        // Runs once. Drivers do not know that, so they do not unroll the outer loop. The unrolled
        // code would no longer fit the instruction cache.
        for (var once = 0u; once < min(k, 1u); once++) { //~ free: comparison, off by one
            subgroupBarrier(); //~ hint: barrier dropped
        }
        let early = W_slabs_of(first, last, false, tile);
        let a = W_ready(held.a, unit, live);
        let b = W_ready(held.b, unit, live);
        let c = W_ready(held.c, unit, live);
        let d = W_ready(held.d, unit, live);
        W_stage(to, a, b, unit, false);
        sums_0 = multiply(early, base, sums_0);
        if (GROUPS > 1u) { //~ surplus: comparison, guard dropped
            W_stage(to, c, d, unit, false);
            sums_1 = multiply(early, base, sums_1);
        }
        let late = W_slabs_of(first, last, true, tile);
        W_stage(to, a, b, unit, true);
        sums_0 = multiply(late, base, sums_0);
        if (GROUPS > 1u) { //~ surplus: comparison, guard dropped
            W_stage(to, c, d, unit, true);
            if (AHEAD) { //~ twice: guard dropped
                held = W_four_of(rows, k, min(first + UNITS * PARTS + lane, last), which);
            }
            sums_1 = multiply(late, base, sums_1);
        }
    }
    finish(sums_0, tile, r0, which, lid, subgroup);
    if (GROUPS > 1u) {
        finish(sums_1, tile, r0 + TILE, which, lid, subgroup);
    }
}
