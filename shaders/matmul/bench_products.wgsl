// sums[t] = a sum of results of products that repeat `steps` times, through cooperative matrices
// Each subgroup multiplies 64 x 16 values by 16 x 64 values, which stay in registers, into 4 x 4
// matrices of f32 sums. So no product waits for memory or for the product before it: the measured
// rate is the roof of every kernel with cooperative matrices. sums [128 * workgroups] f32. Both
// operands are multiples of 1/8 from -3/8 to 3/8, so that sums are exact.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { steps: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

// Vectors of four in a row of 16 values.
const PITCH = 4u;
var<workgroup> xs: array<vec4<f16>, 256>;
var<workgroup> ys: array<f32, 1024>;

// The four values of x[row, 4 * quad..], which are also those of w.
fn values(row: u32, quad: u32) -> vec4<f16> {
    let at = vec4<u32>(0u, 1u, 2u, 3u) + 4u * quad;
    return vec4<f16>(vec4<f32>((at * 3u + row * 5u) % 7u) / 8.0 - 0.375);
}

@compute @workgroup_size(128)
fn bench_products(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    for (var i = lid; i < 256u; i += 128u) {
        xs[i] = values(i >> 2u, i & 3u);
    }
    workgroupBarrier();
    let a0 = coopLoadT<coop_mat16x16<f16, A>>(&xs[0u], PITCH);
    let a1 = coopLoadT<coop_mat16x16<f16, A>>(&xs[16u * PITCH], PITCH);
    let a2 = coopLoadT<coop_mat16x16<f16, A>>(&xs[32u * PITCH], PITCH);
    let a3 = coopLoadT<coop_mat16x16<f16, A>>(&xs[48u * PITCH], PITCH);
    let b0 = coopLoad<coop_mat16x16<f16, B>>(&xs[0u], PITCH);
    let b1 = coopLoad<coop_mat16x16<f16, B>>(&xs[16u * PITCH], PITCH);
    let b2 = coopLoad<coop_mat16x16<f16, B>>(&xs[32u * PITCH], PITCH);
    let b3 = coopLoad<coop_mat16x16<f16, B>>(&xs[48u * PITCH], PITCH);
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
    for (var n = 0u; n < params.steps; n++) {
        c00 = coopMultiplyAdd(a0, b0, c00);
        c10 = coopMultiplyAdd(a1, b0, c10);
        c20 = coopMultiplyAdd(a2, b0, c20);
        c30 = coopMultiplyAdd(a3, b0, c30);
        c01 = coopMultiplyAdd(a0, b1, c01);
        c11 = coopMultiplyAdd(a1, b1, c11);
        c21 = coopMultiplyAdd(a2, b1, c21);
        c31 = coopMultiplyAdd(a3, b1, c31);
        c02 = coopMultiplyAdd(a0, b2, c02);
        c12 = coopMultiplyAdd(a1, b2, c12);
        c22 = coopMultiplyAdd(a2, b2, c22);
        c32 = coopMultiplyAdd(a3, b2, c32);
        c03 = coopMultiplyAdd(a0, b3, c03);
        c13 = coopMultiplyAdd(a1, b3, c13);
        c23 = coopMultiplyAdd(a2, b3, c23);
        c33 = coopMultiplyAdd(a3, b3, c33);
    }
    let base = subgroup * 256u;
    let lane = lid & 31u;
    let pitch = 16u;
    var sum = 0.0;
    let v00 = c00;
    coopStoreT(v00, &ys[base], pitch);
    sum += taken(base, lane);
    let v01 = c01;
    coopStoreT(v01, &ys[base], pitch);
    sum += taken(base, lane);
    let v02 = c02;
    coopStoreT(v02, &ys[base], pitch);
    sum += taken(base, lane);
    let v03 = c03;
    coopStoreT(v03, &ys[base], pitch);
    sum += taken(base, lane);
    let v10 = c10;
    coopStoreT(v10, &ys[base], pitch);
    sum += taken(base, lane);
    let v11 = c11;
    coopStoreT(v11, &ys[base], pitch);
    sum += taken(base, lane);
    let v12 = c12;
    coopStoreT(v12, &ys[base], pitch);
    sum += taken(base, lane);
    let v13 = c13;
    coopStoreT(v13, &ys[base], pitch);
    sum += taken(base, lane);
    let v20 = c20;
    coopStoreT(v20, &ys[base], pitch);
    sum += taken(base, lane);
    let v21 = c21;
    coopStoreT(v21, &ys[base], pitch);
    sum += taken(base, lane);
    let v22 = c22;
    coopStoreT(v22, &ys[base], pitch);
    sum += taken(base, lane);
    let v23 = c23;
    coopStoreT(v23, &ys[base], pitch);
    sum += taken(base, lane);
    let v30 = c30;
    coopStoreT(v30, &ys[base], pitch);
    sum += taken(base, lane);
    let v31 = c31;
    coopStoreT(v31, &ys[base], pitch);
    sum += taken(base, lane);
    let v32 = c32;
    coopStoreT(v32, &ys[base], pitch);
    sum += taken(base, lane);
    let v33 = c33;
    coopStoreT(v33, &ys[base], pitch);
    sum += taken(base, lane);
    sums[id.x * 128u + lid] = sum;
}

// The sum of the results of a lane, of the matrix that its subgroup left at ys[base..].
fn taken(base: u32, lane: u32) -> f32 {
    workgroupBarrier();
    var sum = 0.0;
    for (var i = lane; i < 256u; i += 32u) {
        sum += ys[base + i];
    }
    workgroupBarrier();
    return sum;
}
