// The sums of a workgroup of WG threads: of four products, and of the shares of a norm.
// Needs: WG, lanes_each4, lanes_add. Gives: Acts, Part, PARTS, dot8, parts_leave, parts_sum,
// parts_share.

// Eight activations of a row, and their share of its norm.
struct Acts { v: mat2x4<f32>, share: f32 }

// One thread's part of four products and of the share.
struct Part { sums: vec4<f32>, share: f32 }

const LANES = 32u;
const QUARTER = LANES / 4u;
const PARTS = WG / LANES;
// Sums of every 32 threads: of each product, and of the shares.
var<workgroup> part_sums: array<f32, 4u * PARTS>;
var<workgroup> part_shares: array<f32, PARTS>;

fn dot8(a: mat2x4<f32>, b: mat2x4<f32>) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]);
}

// Every thread leaves its part. `normed` is the same for all threads.
fn parts_leave(part: Part, normed: bool, lid: u32) {
    let one = lanes_each4(part.sums, LANES, lid);
    if (lid % QUARTER == 0u) { //~ twice: off by one, guard dropped
        part_sums[lid / QUARTER] = one;
    }
    if (normed) { //~ unused: guard dropped
        let share = lanes_add(part.share, LANES, lid);
        if (lid % LANES == 0u) { //~ twice: off by one, guard dropped
            part_shares[lid / LANES] = share;
        }
    }
    workgroupBarrier();
}

fn parts_sum(product: u32) -> f32 {
    var sum = part_sums[product];
    for (var part = 1u; part < PARTS; part++) {
        sum += part_sums[4u * part + product];
    }
    return sum;
}

fn parts_share() -> f32 {
    var sum = part_shares[0];
    for (var part = 1u; part < PARTS; part++) {
        sum += part_shares[part];
    }
    return sum;
}
