// The sums of a workgroup of WG threads: of four products of each team of TEAM threads, and of the
// shares of a norm.
// Needs: TEAM, WG, lanes_each4, lanes_add. Gives: Acts, Part, PARTS, dot8, parts_leave, parts_sum,
// parts_share.

// Eight activations of a row, and their share of its norm.
struct Acts { v: mat2x4<f32>, share: f32 }

// One thread's part of four products and of the share.
struct Part { sums: vec4<f32>, share: f32 }

const LANES = min(32u, TEAM);
const QUARTER = LANES / 4u;
// Neighbourhoods of LANES threads, in a team and in the workgroup.
const PARTS = TEAM / LANES;
const SHARES = WG / LANES;
// Sums of every LANES threads: of each product, and of the shares.
var<workgroup> part_sums: array<f32, 4u * SHARES>;
var<workgroup> part_shares: array<f32, SHARES>;

fn dot8(a: mat2x4<f32>, b: mat2x4<f32>) -> f32 {
    return dot(a[0], b[0]) + dot(a[1], b[1]);
}

// Every thread leaves its part. `normed` is the same for all threads.
fn parts_leave(part: Part, normed: bool, lid: u32) {
    let one = lanes_each4(part.sums, LANES, lid);
    if (lid % QUARTER == 0u) {
        part_sums[lid / QUARTER] = one;
    }
    if (normed) { //~ unused: guard dropped
        let share = lanes_add(part.share, LANES, lid);
        if (lid % LANES == 0u) {
            part_shares[lid / LANES] = share;
        }
    }
    workgroupBarrier();
}

// Products 4 n.. are those of team n.
fn parts_sum(product: u32) -> f32 {
    let first = product / 4u * 4u * PARTS + product % 4u;
    var sum = part_sums[first];
    for (var part = 1u; part < PARTS; part++) {
        sum += part_sums[first + 4u * part];
    }
    return sum;
}

// The threads of the workgroup have one share each.
fn parts_share() -> f32 {
    var sum = part_shares[0];
    for (var part = 1u; part < SHARES; part++) {
        sum += part_shares[part];
    }
    return sum;
}
