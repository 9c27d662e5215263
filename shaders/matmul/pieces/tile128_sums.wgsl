// The loop of a derivative in tiles of 128 x 128 results, with cooperative matrices of f16 and f32
// sums. The workgroup loads 32 rows of both operands while its four subgroups multiply the 32 rows
// before them. Each subgroup makes 64 x 64 results in 4 x 4 matrices. Each matrix is a variable,
// because an array of matrices would not stay in registers.
// Needs: operands_load, DEPTH, operands_store, a_tile, b_tile, TILE, ys, finish. Gives: sum_tile.
fn sum_tile(id: vec3<u32>, rows: u32, subgroup: u32, lid: u32) {
    let m0 = (subgroup >> 1u) * 64u;
    let n0 = (subgroup & 1u) * 64u; //~ rounded: off by one
    var ahead = operands_load(id, 0u, lid);
    var c00 = coop_mat16x16<f32, C>();
    var c01 = coop_mat16x16<f32, C>();
    var c02 = coop_mat16x16<f32, C>();
    var c03 = coop_mat16x16<f32, C>();
    var c10 = coop_mat16x16<f32, C>();
    var c11 = coop_mat16x16<f32, C>();
    var c12 = coop_mat16x16<f32, C>();
    var c13 = coop_mat16x16<f32, C>();
    var c20 = coop_mat16x16<f32, C>();
    var c21 = coop_mat16x16<f32, C>();
    var c22 = coop_mat16x16<f32, C>();
    var c23 = coop_mat16x16<f32, C>();
    var c30 = coop_mat16x16<f32, C>();
    var c31 = coop_mat16x16<f32, C>();
    var c32 = coop_mat16x16<f32, C>();
    var c33 = coop_mat16x16<f32, C>();
    for (var r0 = 0u; r0 < rows; r0 += DEPTH) {
        workgroupBarrier();
        operands_store(ahead, id, lid);
        workgroupBarrier();
        ahead = operands_load(id, r0 + DEPTH, lid);
        for (var depth = 0u; depth < DEPTH; depth += 16u) {
            let a0 = a_tile(m0 + 0u, depth);
            let a1 = a_tile(m0 + 16u, depth);
            let a2 = a_tile(m0 + 32u, depth);
            let a3 = a_tile(m0 + 48u, depth);
            let b0 = b_tile(n0 + 0u, depth);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c20 = coopMultiplyAdd(a2, b0, c20);
            c30 = coopMultiplyAdd(a3, b0, c30);
            let b1 = b_tile(n0 + 16u, depth);
            c01 = coopMultiplyAdd(a0, b1, c01);
            c11 = coopMultiplyAdd(a1, b1, c11);
            c21 = coopMultiplyAdd(a2, b1, c21);
            c31 = coopMultiplyAdd(a3, b1, c31);
            let b2 = b_tile(n0 + 32u, depth);
            c02 = coopMultiplyAdd(a0, b2, c02);
            c12 = coopMultiplyAdd(a1, b2, c12);
            c22 = coopMultiplyAdd(a2, b2, c22);
            c32 = coopMultiplyAdd(a3, b2, c32);
            let b3 = b_tile(n0 + 48u, depth);
            c03 = coopMultiplyAdd(a0, b3, c03);
            c13 = coopMultiplyAdd(a1, b3, c13);
            c23 = coopMultiplyAdd(a2, b3, c23);
            c33 = coopMultiplyAdd(a3, b3, c33);
        }
    }
    let y0 = id.y * TILE + m0;
    let x0 = id.x * TILE + n0;
    let base = subgroup * 256u;
    let lane = lid & 31u;
    let pitch = 16u;
    workgroupBarrier(); //~ rare: barrier dropped
    let v00 = c00;
    coopStoreT(v00, &ys[base], pitch);
    finish(y0 + 0u, x0 + 0u, base, lane);
    let v01 = c01;
    coopStoreT(v01, &ys[base], pitch);
    finish(y0 + 0u, x0 + 16u, base, lane);
    let v02 = c02;
    coopStoreT(v02, &ys[base], pitch);
    finish(y0 + 0u, x0 + 32u, base, lane);
    let v03 = c03;
    coopStoreT(v03, &ys[base], pitch);
    finish(y0 + 0u, x0 + 48u, base, lane);
    let v10 = c10;
    coopStoreT(v10, &ys[base], pitch);
    finish(y0 + 16u, x0 + 0u, base, lane);
    let v11 = c11;
    coopStoreT(v11, &ys[base], pitch);
    finish(y0 + 16u, x0 + 16u, base, lane);
    let v12 = c12;
    coopStoreT(v12, &ys[base], pitch);
    finish(y0 + 16u, x0 + 32u, base, lane);
    let v13 = c13;
    coopStoreT(v13, &ys[base], pitch);
    finish(y0 + 16u, x0 + 48u, base, lane);
    let v20 = c20;
    coopStoreT(v20, &ys[base], pitch);
    finish(y0 + 32u, x0 + 0u, base, lane);
    let v21 = c21;
    coopStoreT(v21, &ys[base], pitch);
    finish(y0 + 32u, x0 + 16u, base, lane);
    let v22 = c22;
    coopStoreT(v22, &ys[base], pitch);
    finish(y0 + 32u, x0 + 32u, base, lane);
    let v23 = c23;
    coopStoreT(v23, &ys[base], pitch);
    finish(y0 + 32u, x0 + 48u, base, lane);
    let v30 = c30;
    coopStoreT(v30, &ys[base], pitch);
    finish(y0 + 48u, x0 + 0u, base, lane);
    let v31 = c31;
    coopStoreT(v31, &ys[base], pitch);
    finish(y0 + 48u, x0 + 16u, base, lane);
    let v32 = c32;
    coopStoreT(v32, &ys[base], pitch);
    finish(y0 + 48u, x0 + 32u, base, lane);
    let v33 = c33;
    coopStoreT(v33, &ys[base], pitch);
    finish(y0 + 48u, x0 + 48u, base, lane);
}
