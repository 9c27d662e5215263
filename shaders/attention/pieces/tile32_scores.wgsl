// The products of a tile's queries with its keys, and of their derivatives with the values, as
// tile32_rows.wgsl staged them: 16 x 16 products a matrix, TURNS matrices a subgroup.
// Needs: KEYS, KINDS, SUBGROUPS, QUERIES, QUADS, qs, WIDE, ks. Gives: Lhs, Rhs, Sums, SCORES,
// scores, Products, Column, multiply, leave_products, leave.
alias Lhs = coop_mat16x16<f16, A>;
alias Rhs = coop_mat16x16<f16, B>;
alias Sums = coop_mat16x16<f32, C>;
const KEY_BANDS = KEYS / 16u;
const TURNS = KINDS * 2u * KEY_BANDS / SUBGROUPS;
const_assert TURNS * SUBGROUPS == KINDS * 2u * KEY_BANDS && TURNS <= 2u;
// Pitch of rows in vectors of four, padded against bank conflicts.
const SCORES = KEYS / 4u + 1u;
// Products with the keys, then those with the values; later sums that are written.
var<workgroup> scores: array<vec4<f32>, KINDS * QUERIES * SCORES>;
struct Products { first: Sums, second: Sums }
// 16 columns of the sums of the first and of the last 16 rows of a result.
struct Column { upper: Sums, lower: Sums }

// Adds the products of the staged columns.
fn multiply(before: Products, subgroup: u32) -> Products {
    var sums = before;
    for (var column = 0u; column < QUADS; column += 4u) { //~ rounded: off by one
        sums.first = product(sums.first, subgroup, column);
        if (TURNS > 1u) {
            sums.second = product(sums.second, subgroup + SUBGROUPS, column);
        }
    }
    return sums;
}

// Matrices are numbered by kind, by 16 queries, then by 16 keys.
fn product(sum: Sums, number: u32, column: u32) -> Sums {
    let query = number / KEY_BANDS * 16u;
    let key = number / (2u * KEY_BANDS) * KEYS + number % KEY_BANDS * 16u;
    let left = coopLoadT<Lhs>(&qs[query * WIDE + column], WIDE);
    let right = coopLoad<Rhs>(&ks[key * WIDE + column], WIDE);
    return coopMultiplyAdd(left, right, sum);
}

fn put(m: Sums, to: u32, apart: u32) {
    let sums = m;
    let at = to;
    let pitch = apart;
    coopStoreT(sums, &scores[at], pitch);
}

fn leave_products(sums: Products, subgroup: u32) {
    put(sums.first, subgroup / KEY_BANDS * 16u * SCORES + subgroup % KEY_BANDS * 4u, SCORES);
    if (TURNS > 1u) {
        let number = subgroup + SUBGROUPS;
        put(sums.second, number / KEY_BANDS * 16u * SCORES + number % KEY_BANDS * 4u, SCORES);
    }
}

// Leaves 16 x 16 sums where the lanes of the subgroup read them, 64 vectors of four.
fn leave(sums: Sums, subgroup: u32) {
    workgroupBarrier();
    put(sums, 64u * subgroup, 4u);
    workgroupBarrier();
}
