// The loop of products in tiles of 128 rows by 16 GROUPS rows of weights, with cooperative matrices
// of f16 and f32 sums. Each of four subgroups multiplies 32 rows of x, whose fragments it loads
// from slabs, with all weights of the tile. The workgroup loads 64 columns of the weights while it
// multiplies the 64 columns before them, which it staged. Each matrix is a member by name, because
// an array of matrices would not stay in registers. Members past GROUPS are unused.
// Needs: x, ws, PITCH, GROUPS, begin, params.k, params.slab, ahead_load, SLOTS, DEPTH, ahead_store.
// Gives: YMatrix, Band, Sums, QUADS, sums_of.
alias XMatrix = coop_mat16x16<f16, A>;
alias WMatrix = coop_mat16x16<f16, B>;
alias YMatrix = coop_mat16x16<f32, C>;
struct Band { a: YMatrix, b: YMatrix, c: YMatrix, d: YMatrix, e: YMatrix, f: YMatrix, g: YMatrix, h: YMatrix }
struct Sums { t0: Band, t1: Band }
// Fragments of x: 16 columns of both bands of 16 rows.
struct Slab { t0: XMatrix, t1: XMatrix }
// Vectors of four in a row of a slab.
const QUADS = 4u;

// The fragments of a slab at `at`. The rows of the two bands begin at `first` and `second` in it.
fn of_columns(at: u32, first: u32, second: u32) -> Slab {
    return Slab(coopLoadT<XMatrix>(&x[at + first], QUADS), coopLoadT<XMatrix>(&x[at + second], QUADS));
}

fn of_weights(group: u32, step: u32) -> WMatrix {
    return coopLoad<WMatrix>(&ws[16u * group * PITCH + 2u * step][0], 2u * PITCH);
}

// Adds the products of 16 columns, the `step`-th of those staged.
fn multiplied(x: Slab, step: u32, sums: Sums) -> Sums {
    var to = sums;
    let a = of_weights(0u, step);
    to.t0.a = coopMultiplyAdd(x.t0, a, to.t0.a);
    to.t1.a = coopMultiplyAdd(x.t1, a, to.t1.a);
    let b = of_weights(1u, step);
    to.t0.b = coopMultiplyAdd(x.t0, b, to.t0.b);
    to.t1.b = coopMultiplyAdd(x.t1, b, to.t1.b);
    let c = of_weights(2u, step);
    to.t0.c = coopMultiplyAdd(x.t0, c, to.t0.c);
    to.t1.c = coopMultiplyAdd(x.t1, c, to.t1.c);
    let d = of_weights(3u, step);
    to.t0.d = coopMultiplyAdd(x.t0, d, to.t0.d);
    to.t1.d = coopMultiplyAdd(x.t1, d, to.t1.d);
    if (GROUPS > 4u) {
        let e = of_weights(4u, step);
        to.t0.e = coopMultiplyAdd(x.t0, e, to.t0.e);
        to.t1.e = coopMultiplyAdd(x.t1, e, to.t1.e);
        let f = of_weights(5u, step);
        to.t0.f = coopMultiplyAdd(x.t0, f, to.t0.f);
        to.t1.f = coopMultiplyAdd(x.t1, f, to.t1.f);
        let g = of_weights(6u, step);
        to.t0.g = coopMultiplyAdd(x.t0, g, to.t0.g);
        to.t1.g = coopMultiplyAdd(x.t1, g, to.t1.g);
        let h = of_weights(7u, step);
        to.t0.h = coopMultiplyAdd(x.t0, h, to.t0.h);
        to.t1.h = coopMultiplyAdd(x.t1, h, to.t1.h);
    }
    return to;
}

// The sums of the subgroup whose first row of x is t0, for the rows of weights from r0 on.
fn sums_of(r0: u32, t0: u32, lid: u32) -> Sums {
    begin(lid);
    let k = params.k;
    // The distance from a slab, which has 16 columns, to the next, and the offset of the last slab,
    // in vectors of four.
    let next_slab = params.slab * QUADS;
    let last_slab = (k >> 4u) * next_slab - next_slab;
    // The offsets of both bands in a slab. A band past the slab repeats its last band.
    let first = min(t0, params.slab - 16u) * QUADS;
    let second = min(t0 + 16u, params.slab - 16u) * QUADS;
    var early = ahead_load(r0, k, 0u, lid); //~ rounded: off by one
    var late = early;
    if (SLOTS > 1u) {
        late = ahead_load(r0, k, 0u, lid + 128u); //~ rounded: off by one
    }
    var sums = Sums();
    var slab = 0u;
    for (var k0 = 0u; k0 < k; k0 += DEPTH) { //~ rounded: off by one
        workgroupBarrier();
        ahead_store(early, k0, lid);
        if (SLOTS > 1u) {
            ahead_store(late, k0, lid + 128u);
        }
        workgroupBarrier();
        early = ahead_load(r0, k, k0 + DEPTH, lid);
        if (SLOTS > 1u) { //~ surplus: off by one
            late = ahead_load(r0, k, k0 + DEPTH, lid + 128u);
        }
        // A loop over these steps would keep the sums in memory.
        sums = multiplied(of_columns(min(slab, last_slab), first, second), 0u, sums);
        sums = multiplied(of_columns(min(slab + next_slab, last_slab), first, second), 1u, sums);
        sums = multiplied(of_columns(min(slab + 2u * next_slab, last_slab), first, second), 2u, sums);
        sums = multiplied(of_columns(min(slab + 3u * next_slab, last_slab), first, second), 3u, sums);
        slab += 4u * next_slab;
    }
    return sums;
}
