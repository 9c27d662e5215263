// dx[s, k] = sum_r dy[s, r] w[experts[s] * stride + first + r, k] over the rows r < n that are in
// this part of w, added to dx if onto = 1, for every slot s: the derivative of matmul_experts.wgsl
// by the row of a slot
// dy [T k, n] f32, w [row_count, k] in any weight format (rows row_base.. of all experts' rows),
// slots [T k] u32 and tiles [M, 3] u32 of group_experts.wgsl, dx [T k, k] f32. One workgroup makes
// 32 slots of one expert by 128 columns. It stages 16 rows of w, 128 columns of each, as
// they lie, and 16 columns of dy. Every thread accumulates 4 x 4 results.
// Needs: rows_in_part (rows_in_part.wgsl), w_row, w_load4 (the format of w). Gives: params.stride,
// params.first, params.n, params.row_base, params.row_count.
struct Params { k: u32, n: u32, stride: u32, first: u32, row_base: u32, row_count: u32, onto: u32, shares: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> slots: array<u32>;
@group(0) @binding(4) var<storage, read> tiles: array<u32>;
@group(0) @binding(5) var<storage, read_write> dx: array<f32>;

const SLOTS = 32u;
const COLUMNS = 128u;
const DEPTH = 16u;
var<workgroup> ds: array<vec4<f32>, DEPTH * SLOTS / 4u>;
var<workgroup> ws: array<vec4<f32>, DEPTH * COLUMNS / 4u>;

@compute @workgroup_size(256)
fn matmul_experts_input(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    // `shares` workgroups share a tile.
    let tile = 3u * (id.y / params.shares);
    let before = min(SLOTS * (id.y % params.shares), tiles[tile + 2u]);
    let place = tiles[tile + 1u] + before;
    let count = min(tiles[tile + 2u] - before, SLOTS);
    if (count == 0u) { //~ exit: guard dropped
        return;
    }
    let k = params.k;
    let range = rows_in_part(tiles[tile]);
    // Staging of dy: thread (row = lid / 4, quad = lid mod 4) loads four columns of a slot.
    let quad = lid & 3u;
    let row = lid >> 2u; //~ twice: shift
    let dy_start = slots[place + min(row, count - 1u)] * params.n;
    // Staging of w: thread (depth = lid / 16, lid mod 16) loads eight columns of a row.
    let depth = lid >> 4u;
    let near = id.x * (COLUMNS / 4u) + (lid & 15u);
    let far = near + 16u;
    // Results: thread (m, j) owns slots 4 m .. by columns 4 j ..
    let m = lid >> 5u;
    let j = lid & 31u;
    var acc = array<vec4<f32>, 4>();
    for (var r0 = range.x; r0 < range.y; r0 += DEPTH) {
        var dv = vec4<f32>(0.0);
        for (var c = 0u; c < 4u; c++) {
            let r = r0 + 4u * quad + c;
            if (r < range.y) { //~ zeros: comparison, guard dropped
                dv[c] = dy[dy_start + r];
            }
        }
        var nv = vec4<f32>(0.0);
        var fv = vec4<f32>(0.0);
        if (r0 + depth < range.y) { //~ zeros: comparison, guard dropped
            let at = w_row(range.z + r0 + depth, k);
            if (4u * near < k) { //~ dropped: comparison, guard dropped
                nv = w_load4(at, k, near);
            }
            if (4u * far < k) { //~ dropped: comparison, guard dropped
                fv = w_load4(at, k, far);
            }
        }
        workgroupBarrier();
        if (row < SLOTS) {
            for (var c = 0u; c < 4u; c++) {
                ds[(4u * quad + c) * (SLOTS / 4u) + (row >> 2u)][row & 3u] = dv[c];
            }
        }
        ws[depth * (COLUMNS / 4u) + (lid & 15u)] = nv;
        ws[depth * (COLUMNS / 4u) + (lid & 15u) + 16u] = fv;
        workgroupBarrier();
        for (var d = 0u; d < DEPTH; d++) {
            let a = ds[d * (SLOTS / 4u) + m];
            let b = ws[d * (COLUMNS / 4u) + j];
            acc[0] += a.x * b;
            acc[1] += a.y * b;
            acc[2] += a.z * b;
            acc[3] += a.w * b;
        }
    }
    for (var a = 0u; a < 4u; a++) {
        if (4u * m + a < count) {
            let slot = slots[place + 4u * m + a];
            for (var b = 0u; b < 4u; b++) {
                let column = id.x * COLUMNS + 4u * j + b;
                if (column < k) {
                    let at = slot * k + column;
                    dx[at] = select(acc[a][b], dx[at] + acc[a][b], params.onto == 1u);
                }
            }
        }
    }
}
