// y[s, r] = sum_k w[experts[s] * stride + first + r, k] x[s, k] for every slot s (a row of the step
// and one of its choices), with cooperative matrices of f16 and f32 sums
// x [k / 16, slab, 16] f16 and scales [T chosen] f32: rows in the order of `slots`
// (gather_slots.wgsl), w [row_count, k] (rows row_base.. of all experts' rows), k a multiple of 32,
// slots [T chosen] u32 and tiles [M, 3] u32 of group_experts.wgsl, y [T chosen, n] f32. One
// workgroup makes a tile of up to 64 slots of one expert by 128 rows, 32 rows to a subgroup, which
// stages 64 columns of its rows for itself and loads fragments of x from memory. There is one loop
// for each number of bands of 16 slots, because cooperative matrices that are used in a branch do
// not stay in registers. Results of rows in other parts of w are not written.
// Needs: w_ready, w_held, w_eight, w_halves, w_begin, w_row (the format of w), store (slot store).
// Gives: Own, params.row_count, params.n, ys, slots, scales, params.k, WG. Bindings of pieces: y
// (slot store).
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, slab: u32, stride: u32, first: u32, row_base: u32, row_count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> slots: array<u32>;
@group(0) @binding(5) var<storage, read> tiles: array<u32>;

alias OfX = coop_mat16x16<f16, A>;
alias OfW = coop_mat16x16<f16, B>;
alias OfY = coop_mat16x16<f32, C>;
// Fragments of 64 columns of weights: four groups of 16 columns of rows 0 to 15 and of 16 to 31.
struct Weights { a0: OfW, b0: OfW, c0: OfW, d0: OfW, a1: OfW, b1: OfW, c1: OfW, d1: OfW }
// Sums of a band with rows 0 to 15 and 16 to 31.
struct Band { r0: OfY, r1: OfY }

const SUBGROUPS = 4u;
const WG = 32u * SUBGROUPS;
const ROWS = 32u;
// Units of a row that are staged side by side.
const UNITS = 2u;
// Row pitch in eights of columns (PITCH) and in vectors of four (ROW). PITCH is odd, so that eight
// rows start on different banks.
const PITCH = 4u * UNITS + 1u;
const ROW = 2u * PITCH;
// Vectors of four in a fragment of x.
const FRAGMENT = 64u;
var<workgroup> ws: array<mat2x4<f16>, SUBGROUPS * ROWS * PITCH>;
// 16 x 16 results of each subgroup.
var<workgroup> ys: array<f32, SUBGROUPS * 256u>;

// The part of a subgroup: its slots, its first row within the expert and within this part of w, the
// last unit of a row, and the offsets in w of this thread's two rows, in ws of the staged rows, and
// in ys of the results.
struct Own { place: u32, count: u32, top: u32, local: u32, last: u32, rows: vec2<u32>, at: u32, base: u32, lane: u32 }

fn stage_row(own: Own, row: u32, first: u32, to: u32) {
    let unit = first + (own.lane & 1u);
    let live = select(0.0, 1.0, unit <= own.last);
    let u = min(unit, own.last);
    let ready = w_ready(w_held(row, params.k, u), u, live);
    ws[to] = w_eight(ready, u, false, false);
    ws[to + 1u] = w_eight(ready, u, false, true);
    ws[to + 2u] = w_eight(ready, u, true, false);
    ws[to + 3u] = w_eight(ready, u, true, true);
}

fn staged(at: u32) -> OfW {
    return coopLoad<OfW>(&ws[at][0], ROW);
}

// Stages two units of the subgroup's rows, the unit `first` and the next one.
fn weights(own: Own, first: u32) -> Weights {
    let to = own.at + (own.lane >> 1u) * PITCH + 4u * (own.lane & 1u);
    subgroupBarrier();
    stage_row(own, own.rows.x, first, to);
    stage_row(own, own.rows.y, first, to + 16u * PITCH);
    subgroupBarrier();
    let more = own.at + 16u * PITCH;
    return Weights(
        staged(own.at), staged(own.at + 2u), staged(own.at + 4u), staged(own.at + 6u),
        staged(more), staged(more + 2u), staged(more + 4u), staged(more + 6u));
}

// The indices in x of the fragments of the first band that these weights multiply.
fn slabs(own: Own, first: u32) -> vec4<u32> {
    let even = w_halves(first);
    let odd = w_halves(min(first + 1u, own.last));
    return (vec4<u32>(even, odd) * params.slab + own.place) * 4u;
}

fn fragment(at: u32) -> OfX {
    return coopLoadT<OfX>(&x[at], 4u);
}

// Adds the products of one band.
fn add(w: Weights, at: vec4<u32>, to: Band) -> Band {
    let a = fragment(at.x);
    let b = fragment(at.y);
    let c = fragment(at.z);
    let d = fragment(at.w);
    return Band(
        coopMultiplyAdd(d, w.d0, coopMultiplyAdd(c, w.c0, coopMultiplyAdd(b, w.b0, coopMultiplyAdd(a, w.a0, to.r0)))),
        coopMultiplyAdd(d, w.d1, coopMultiplyAdd(c, w.c1, coopMultiplyAdd(b, w.b1, coopMultiplyAdd(a, w.a1, to.r1)))));
}

fn bands_1(own: Own) {
    var a = Band();
    for (var first = 0u; first <= own.last; first += UNITS) {
        let w = weights(own, first);
        let at = slabs(own, first);
        a = add(w, at, a);
    }
    finish(own, 0u, a);
}

fn bands_2(own: Own) {
    var a = Band();
    var b = Band();
    for (var first = 0u; first <= own.last; first += UNITS) {
        let w = weights(own, first);
        let at = slabs(own, first);
        a = add(w, at, a);
        b = add(w, at + FRAGMENT, b);
    }
    finish(own, 0u, a);
    finish(own, 16u, b);
}

fn bands_3(own: Own) {
    var a = Band();
    var b = Band();
    var c = Band();
    for (var first = 0u; first <= own.last; first += UNITS) {
        let w = weights(own, first);
        let at = slabs(own, first);
        a = add(w, at, a);
        b = add(w, at + FRAGMENT, b);
        c = add(w, at + 2u * FRAGMENT, c);
    }
    finish(own, 0u, a);
    finish(own, 16u, b);
    finish(own, 32u, c);
}

fn bands_4(own: Own) {
    var a = Band();
    var b = Band();
    var c = Band();
    var d = Band();
    for (var first = 0u; first <= own.last; first += UNITS) {
        let w = weights(own, first);
        let at = slabs(own, first);
        a = add(w, at, a);
        b = add(w, at + FRAGMENT, b);
        c = add(w, at + 2u * FRAGMENT, c);
        d = add(w, at + 3u * FRAGMENT, d);
    }
    finish(own, 0u, a);
    finish(own, 16u, b);
    finish(own, 32u, c);
    finish(own, 48u, d);
}

// Writes the results of the band at slot t0 of the tile.
fn finish(own: Own, t0: u32, sums: Band) {
    finish_rows(own, t0, 0u, sums.r0);
    finish_rows(own, t0, 16u, sums.r1);
}

fn finish_rows(own: Own, t0: u32, r0: u32, sums: OfY) {
    subgroupBarrier();
    coopStoreT(sums, &ys[own.base], 16u);
    subgroupBarrier();
    store(own, t0, r0);
}

@compute @workgroup_size(WG)
fn matmul_tile64_experts(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    w_begin(lid);
    let place = tiles[3u * id.y + 1u];
    let count = tiles[3u * id.y + 2u];
    // `top`: first row of this subgroup within the expert. `local`: the same row within this part
    // of w. Rows before this part wrap around to large numbers.
    let top = (id.x * SUBGROUPS + subgroup) * ROWS;
    let local = tiles[3u * id.y] * params.stride + params.first + top - params.row_base;
    // Operators that leave out their right side would be another branch.
    if ((count == 0u) | (top >= params.n) | ((local >= params.row_count) & (local + ROWS > local))) { //~ exit: sign, comparison, off by one, guard dropped
        return;
    }
    let lane = lid & 31u;
    let row = vec2<u32>(local + (lane >> 1u), local + (lane >> 1u) + 16u);
    // Rows that are in other parts of w are replaced by the last row.
    let at = min(row, vec2<u32>(params.row_count - 1u)); //~ unowned: sign
    let rows = vec2<u32>(w_row(at.x, params.k), w_row(at.y, params.k));
    let own = Own(place, count, top, local, (params.k >> 5u) - 1u, rows, subgroup * ROWS * PITCH, subgroup * 256u, lane);
    switch (count + 15u) >> 4u { //~ surplus: off by one
        case 1u: { bands_1(own); }
        case 2u: { bands_2(own); }
        case 3u: { bands_3(own); }
        default: { bands_4(own); }
    }
}
