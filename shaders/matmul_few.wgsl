// y[t, row_base + r] = sum_k w[r, k] x[t, k] + bias[row_base + r] for few rows of x, through cooperative matrices of f16 with f32 sums
// x [k / 16, 16 BANDS, 16] f16, 16 columns of all rows together, divided by scales [rows] f32 (pack_f16.wgsl), w [row_count, k] in a format with
// units, k a multiple of 32, bias f32 (if has_bias), y [rows, n] f32. One workgroup makes 16 BANDS x 32 results (few_bands_*.wgsl): each of
// its PARTS subgroups (few_parts_*.wgsl) takes every PARTS-th 32 columns, a row of w per thread; the subgroups' sums are added at the end. The
// matrices are variables because arrays of them would leave registers.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { k: u32, n: u32, rows: u32, row_base: u32, row_count: u32, has_bias: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;

const WG = 32u * PARTS;
const TILE = 32u;
// Rows of 32 halves are padded so that they start on different banks; in vectors of four.
const PITCH = 10u;
// Of a fragment of x, and of all rows' 16 columns, likewise.
const BAND = 64u;
const SLAB = BAND * BANDS;
var<workgroup> ws: array<vec4<f16>, WG * PITCH>;
var<workgroup> ys: array<f32, PARTS * 256u>;

// Writes the 16 x 16 results whose parts the subgroups left in ys.
fn finish(t0: u32, r0: u32, lid: u32) {
    workgroupBarrier();
    for (var i = lid; i < 256u; i += WG) {
        let t = t0 + (i >> 4u);
        let r = r0 + (i & 15u);
        var sum = 0.0;
        for (var part = 0u; part < PARTS; part++) {
            sum += ys[part * 256u + i];
        }
        if (t < params.rows && r < params.row_count) {
            let at = params.row_base + r;
            let v = sum * scales[t];
            y[t * params.n + at] = select(v, v + bias[at], params.has_bias == 1u);
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(WG)
fn matmul_few(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let k = params.k;
    let r0 = workgroup_number(id, extents) * TILE;
    let row = w_row(min(r0 + (lid & 31u), params.row_count - 1u), k);
    let steps = k >> 5u;
    let base = subgroup * (TILE * PITCH);
    var c00 = coop_mat16x16<f32, C>();
    var c01 = coop_mat16x16<f32, C>();
    var c10 = coop_mat16x16<f32, C>();
    var c11 = coop_mat16x16<f32, C>();
    var c20 = coop_mat16x16<f32, C>();
    var c21 = coop_mat16x16<f32, C>();
    var c30 = coop_mat16x16<f32, C>();
    var c31 = coop_mat16x16<f32, C>();
    var step = min(subgroup, steps - 1u);
    var raw = w_raw(row, k, 2u * step);
    for (var turn = 0u; turn < steps; turn += PARTS) {
        // Subgroups without columns in the last turn stage zeros.
        let live = select(0.0, 1.0, turn + subgroup < steps);
        let groups = w_groups(raw, 2u * step);
        workgroupBarrier();
        group_store(lid * PITCH, groups.first, live * groups.scale.x, live * groups.least.x);
        group_store(lid * PITCH + 4u, groups.second, live * groups.scale.y, live * groups.least.y);
        workgroupBarrier();
        let at = step * (2u * SLAB);
        step = min(step + PARTS, steps - 1u);
        raw = w_raw(row, k, 2u * step);
        for (var half = 0u; half < 2u; half++) {
            let slab = at + half * SLAB;
            let b0 = coopLoad<coop_mat16x16<f16, B>>(&ws[base + 4u * half], PITCH);
            let b1 = coopLoad<coop_mat16x16<f16, B>>(&ws[base + 16u * PITCH + 4u * half], PITCH);
            let a0 = coopLoadT<coop_mat16x16<f16, A>>(&x[slab], 4u);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c01 = coopMultiplyAdd(a0, b1, c01);
            if (BANDS > 1u) {
                let a1 = coopLoadT<coop_mat16x16<f16, A>>(&x[slab + BAND], 4u);
                c10 = coopMultiplyAdd(a1, b0, c10);
                c11 = coopMultiplyAdd(a1, b1, c11);
            }
            if (BANDS > 2u) {
                let a2 = coopLoadT<coop_mat16x16<f16, A>>(&x[slab + 2u * BAND], 4u);
                c20 = coopMultiplyAdd(a2, b0, c20);
                c21 = coopMultiplyAdd(a2, b1, c21);
                let a3 = coopLoadT<coop_mat16x16<f16, A>>(&x[slab + 3u * BAND], 4u);
                c30 = coopMultiplyAdd(a3, b0, c30);
                c31 = coopMultiplyAdd(a3, b1, c31);
            }
        }
    }
    let to = subgroup * 256u;
    let v00 = c00;
    coopStoreT(v00, &ys[to], 16u);
    finish(0u, r0, lid);
    let v01 = c01;
    coopStoreT(v01, &ys[to], 16u);
    finish(0u, r0 + 16u, lid);
    if (BANDS > 1u) {
        let v10 = c10;
        coopStoreT(v10, &ys[to], 16u);
        finish(16u, r0, lid);
        let v11 = c11;
        coopStoreT(v11, &ys[to], 16u);
        finish(16u, r0 + 16u, lid);
    }
    if (BANDS > 2u) {
        let v20 = c20;
        coopStoreT(v20, &ys[to], 16u);
        finish(32u, r0, lid);
        let v21 = c21;
        coopStoreT(v21, &ys[to], 16u);
        finish(32u, r0 + 16u, lid);
        let v30 = c30;
        coopStoreT(v30, &ys[to], 16u);
        finish(48u, r0, lid);
        let v31 = c31;
        coopStoreT(v31, &ys[to], 16u);
        finish(48u, r0 + 16u, lid);
    }
}
