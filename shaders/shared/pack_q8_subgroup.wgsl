// pack_q8.wgsl through subgroup shuffles. The eight threads of a block share a subgroup.
// Needs: Q8Part, q8_scale, q8_quants, q8_part. Gives: q8_quad.
fn q8_quad(inside: bool, v: vec4<f32>, share: f32, lid: u32) -> Q8Part {
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
    let upper = (lid & 4u) == 4u; //~ surplus: mask, off by one
    return q8_part(q, scale, select(sums, others, upper), select(others, sums, upper), lid);
}
