// Writes activations as 8-bit quants, as pack_q8.wgsl does, by exchange between the eight threads of a block, which share a subgroup.
fn pack_q8_quad(row: u32, k: u32, quad: u32, inside: bool, v: vec4<f32>, share: f32, lid: u32) {
    var largest = select(0.0, max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w))), inside);
    largest = max(largest, subgroupShuffleXor(largest, 1u));
    largest = max(largest, subgroupShuffleXor(largest, 2u));
    largest = max(largest, subgroupShuffleXor(largest, 4u));
    let scale = q8_scale(largest);
    let q = q8_quants(v, scale);
    var sums = vec2<f32>(q.x + q.y + q.z + q.w, share);
    sums += subgroupShuffleXor(sums, 1u);
    sums += subgroupShuffleXor(sums, 2u);
    let others = subgroupShuffleXor(sums, 4u);
    if (!inside) {
        return;
    }
    let upper = (lid & 4u) == 4u;
    q8_store(row, k, quad, q, scale, select(sums, others, upper), select(others, sums, upper), lid);
}
