// The blocks of four rows of Q4_K for one thread (rows.wgsl), for devices where 32 neighbouring
// threads share a subgroup. Of the 32 bytes of two sub-blocks a thread loads 16. It gets the others
// from its neighbour, whose a is its b and whose c is its d. Each of a superblock's eight threads
// unpacks the scales of four sub-blocks of its first row.
struct W_Ab { a: vec4<u32>, b: vec4<u32>, head: vec4<u32> }
struct W_Cd { c: vec4<u32>, d: vec4<u32> }

const W_near = true;

fn W_lane(lid: u32) -> u32 {
    return lid;
}

fn W_ab(r: u32, final_row: u32, k: u32, block: u32, lid: u32) -> W_Ab {
    let own = held_order(W_near, lid);
    let at = (block >> 3u) * 9u;
    let piece = at + 1u + (block & 7u);
    let a = W_row(min(r + own, final_row), k) >> 2u;
    let b = W_row(min(r + (own ^ 1u), final_row), k) >> 2u;
    return W_Ab(W[a + piece], W[b + piece], W[a + at]);
}

fn W_cd(r: u32, final_row: u32, k: u32, block: u32, lid: u32) -> W_Cd {
    let own = held_order(W_near, lid);
    let piece = (block >> 3u) * 9u + 1u + (block & 7u);
    let c = W_row(min(r + (own ^ 2u), final_row), k) >> 2u;
    let d = W_row(min(r + (own ^ 3u), final_row), k) >> 2u;
    return W_Cd(W[c + piece], W[d + piece]);
}

// Scales and minima of sub-blocks 0 to 3 or 4 to 7 (packed as in scale_min.wgsl), a byte each, and
// d with dmin.
fn W_scales(head: vec4<u32>, block: u32) -> vec3<u32> {
    let late = (vec2<u32>(head.w, head.w >> 4u) & vec2<u32>(0x0f0f0f0fu)) | ((head.yz >> vec2<u32>(2u)) & vec2<u32>(0x30303030u));
    return vec3<u32>(select(head.yz & vec2<u32>(0x3f3f3f3fu), late, (block & 4u) == 4u), head.x);
}

fn W_shared(own: vec4<u32>, beside: vec4<u32>, scales: vec3<u32>, block: u32) -> Unit {
    let other = subgroupShuffleXor(beside, 1u);
    let bytes = (scales.xy >> vec2<u32>(8u * (block & 3u))) & vec2<u32>(255u);
    let scale = unpack2x16float(scales.z) * vec2<f32>(bytes);
    let shift = vec4<u32>(4u * (block & 1u));
    let low = vec4<u32>(0x0f0f0f0fu);
    return Unit((own >> shift) & low, (other >> shift) & low, scale.xx, scale.yy);
}

fn W_of_a(ab: W_Ab, k: u32, block: u32) -> Unit {
    return W_shared(ab.a, ab.b, W_scales(ab.head, block), block);
}

fn W_of_b(ab: W_Ab, k: u32, block: u32) -> Unit {
    return W_shared(ab.b, ab.a, subgroupShuffleXor(W_scales(ab.head, block), 1u), block);
}

fn W_of_c(ab: W_Ab, cd: W_Cd, k: u32, block: u32) -> Unit {
    return W_shared(cd.c, cd.d, subgroupShuffleXor(W_scales(ab.head, block), 2u), block);
}

fn W_of_d(ab: W_Ab, cd: W_Cd, k: u32, block: u32) -> Unit {
    return W_shared(cd.d, cd.c, subgroupShuffleXor(W_scales(ab.head, block), 3u), block);
}
