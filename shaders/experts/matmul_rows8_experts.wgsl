// y[s, r] = f sum_k w[e stride + first + r, k] x[s / per, k] for every slot s (a row of the step
// and one of its choices) of every expert e, with f the factor of the norm that readers of x apply,
// or 1
// x [T k / per, k] in 8 bits, `heads` rows of x in a packed row (pack_q8.wgsl), w [row_count, k] in
// a format with units (rows row_base.. of all experts' rows), slots [T k] u32 and tiles [tiles, 3]
// u32 of group_experts.wgsl, y [T k, n] f32. One workgroup for 32 rows of an expert and the slots
// of a tile, STEPS slots at a time, as in matmul_rows8.wgsl. Results of rows in other parts of w
// are not written.
// Needs: STEPS (slot steps), WG, rows8_result (rows8_sums.wgsl), workgroup_number (grid.wgsl),
// w_rows8 (the format of w). Gives: MOST, x, PAIRS, slots, params.per, params.heads.
struct Params { k: u32, n: u32, stride: u32, first: u32, per: u32, heads: u32, tiles: u32, row_base: u32, row_count: u32, exchange: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> slots: array<u32>;
@group(0) @binding(4) var<storage, read> tiles: array<u32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

// Rows of weights per workgroup.
const MOST = 32u;
// Whether lanes take rows of weights in pairs instead of fours (matmul_rows8.wgsl says why).
const PAIRS = STEPS == 8u;

@compute @workgroup_size(WG)
fn matmul_rows8_experts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let groups = (params.n + MOST - 1u) / MOST;
    let tile = number / groups;
    if (tile >= params.tiles) { //~ whole: comparison, guard dropped
        return;
    }
    let place = tiles[3u * tile + 1u];
    let held = tiles[3u * tile + 2u];
    // `top`: first row of this workgroup within the expert. `local`: the same row within this part
    // of w. Rows before this part wrap around to large numbers.
    let top = number % groups * MOST;
    let local = tiles[3u * tile] * params.stride + params.first + top - params.row_base;
    // Operators that leave out their right side would be another branch.
    if ((held == 0u) | ((local >= params.row_count) & (local + MOST > local))) { //~ exit: sign, comparison, guard dropped
        return;
    }
    let count = min(MOST, params.n - top);
    for (var t = 0u; t < held; t += STEPS) { //~ race: comparison
        let last = held - 1u - t; //~ race: sign
        w_rows8(place + t, last, local, params.row_count - 1u, count, params.k, lid); //~ unowned: sign
        workgroupBarrier();
        for (var i = lid; i < MOST * STEPS; i += WG) { //~ later: comparison
            let r = i & (MOST - 1u);
            let step = i / MOST;
            if (step <= last && r < count && local + r < params.row_count) { //~ later: comparison
                y[slots[place + t + step] * params.n + top + r] = rows8_result(r, step);
            }
        }
        workgroupBarrier();
    }
}
