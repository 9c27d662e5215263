// y[s, r] = sum_k w[experts[s] * stride + first + r, k] x[s / per, k] for every slot s (a row of
// the step and one of its choices)
// x [T k / per, k] f32, w [row_count, k] in any weight format (rows row_base.. of all experts'
// rows), slots [T k] u32 and tiles [M, 3] u32 of group_experts.wgsl, y [T k, n] f32. One workgroup
// makes 32 slots of one expert by 128 rows. It stages both operands, 16 columns at a
// time, k-major. Every thread accumulates 4 x 4 results. Results of rows in other parts of w are
// not written.
// Needs: w_row, w_load4 (the format of w), x_load4 (slot quads). Gives: nothing. Bindings of
// pieces: x (slot quads).
struct Params { k: u32, n: u32, stride: u32, first: u32, per: u32, row_base: u32, row_count: u32, shares: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> slots: array<u32>;
@group(0) @binding(4) var<storage, read> tiles: array<u32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const SLOTS = 32u;
const WEIGHT_ROWS = 128u;
const DEPTH = 16u;
var<workgroup> xs: array<vec4<f32>, DEPTH * SLOTS / 4u>;
var<workgroup> ws: array<vec4<f32>, DEPTH * WEIGHT_ROWS / 4u>;

@compute @workgroup_size(256)
fn matmul_experts(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    // `shares` workgroups share a tile.
    let tile = 3u * (id.y / params.shares);
    let before = min(SLOTS * (id.y % params.shares), tiles[tile + 2u]);
    let place = tiles[tile + 1u] + before;
    let count = min(tiles[tile + 2u] - before, SLOTS); //~ race: sign
    // `top`: first row of this tile within the expert. `local`: the same row within this part of w.
    // Rows before this part wrap around to large numbers.
    let top = id.x * WEIGHT_ROWS;
    let local = tiles[tile] * params.stride + params.first + top - params.row_base;
    if (count == 0u || (local >= params.row_count && local + WEIGHT_ROWS > local)) { //~ exit: sign, comparison, off by one, guard dropped
        return;
    }
    let k = params.k;
    // Staging: thread (row = lid / 4, quad = lid mod 4) loads four columns of one slot and two
    // rows.
    let quad = lid & 3u;
    let row = lid >> 2u;
    let x_row = slots[place + min(row, count - 1u)] / params.per;
    let near = w_row(select(0u, local + row, owned(local, top, row)), k); //~ unowned: off by one
    let far = w_row(select(0u, local + row + 64u, owned(local, top, row + 64u)), k); //~ unowned: off by one
    // Results: thread (m, n) owns slots 4 m .. by rows 4 n ..
    let m = lid >> 5u;
    let n = lid & 31u;
    var acc = array<vec4<f32>, 4>();
    for (var k0 = 0u; k0 < k; k0 += DEPTH) {
        let i = (k0 >> 2u) + quad;
        var xv = vec4<f32>(0.0);
        var nv = vec4<f32>(0.0);
        var fv = vec4<f32>(0.0);
        if (4u * i < k) {
            nv = w_load4(near, k, i);
            fv = w_load4(far, k, i);
            if (row < SLOTS) { //~ dropped: comparison, guard dropped
                xv = x_load4(x_row, k, i);
            }
        }
        workgroupBarrier();
        for (var j = 0u; j < 4u; j++) {
            let at = (4u * quad + j) * (WEIGHT_ROWS / 4u) + (row >> 2u);
            ws[at][row & 3u] = nv[j];
            ws[at + 16u][row & 3u] = fv[j];
            if (row < SLOTS) {
                xs[(4u * quad + j) * (SLOTS / 4u) + (row >> 2u)][row & 3u] = xv[j];
            }
        }
        workgroupBarrier();
        for (var j = 0u; j < DEPTH; j++) {
            let a = xs[j * (SLOTS / 4u) + m];
            let b = ws[j * (WEIGHT_ROWS / 4u) + n];
            acc[0] += a.x * b;
            acc[1] += a.y * b;
            acc[2] += a.z * b;
            acc[3] += a.w * b;
        }
    }
    for (var i = 0u; i < 4u; i++) { //~ later: comparison
        if (4u * m + i < count) { //~ race: comparison, guard dropped
            let slot = slots[place + 4u * m + i];
            for (var j = 0u; j < 4u; j++) {
                let r = 4u * n + j;
                if (owned(local, top, r)) {
                    y[slot * params.n + top + r] = acc[i][j];
                }
            }
        }
    }
}

// Whether row r of the tile is a row of the product and in this part of w.
fn owned(local: u32, top: u32, r: u32) -> bool {
    return local + r < params.row_count && top + r < params.n; //~ later: comparison
}
