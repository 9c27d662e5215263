// y[r] = the k largest elements of x[r], value descending, then index ascending: k values, then k
// indices
// x [rows, dim] f32, read as bits, y [rows, 2 k] of f32 bits and u32. NaN is left out. If fewer
// than k elements remain, the rest is minus infinity and 0xffffffff. One workgroup per row.
// Needs: order_key, NAN_KEY, precedes, best_of (order.wgsl), workgroup_number (grid.wgsl),
// list_largest, strip_keys, ROOM, found (largest.wgsl). Gives: WG, key_at.
struct Params { dim: u32, rows: u32, k: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

const WG = 256u;

fn key_at(i: u32) -> u32 {
    return order_key(x[i]);
}

@compute @workgroup_size(WG)
fn top_k(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.dim;
    let count = list_largest(base, params.dim, params.k, strip_keys(base, params.dim, lid), lid);
    if (count > ROOM) { //~ meet: comparison
        one_by_one(row, base, lid);
        return;
    }
    for (var j = lid; j < params.k; j += WG) {
        if (j < count) {
            put(row, j, x[base + found[j].y], found[j].y);
        } else {
            put(row, j, 0xff800000u, 0xffffffffu);
        }
    }
}

fn put(row: u32, j: u32, value: u32, index: u32) {
    y[row * 2u * params.k + j] = value;
    y[row * 2u * params.k + params.k + j] = index;
}

// For rows with more elements at the bound than the list holds: k sweeps, each of which finds the
// next element in order.
fn one_by_one(row: u32, base: u32, lid: u32) {
    var last = vec2<u32>(0xffffffffu, 0u); //~ never: off by one
    for (var j = 0u; j < params.k; j++) {
        var best = vec2<u32>(NAN_KEY, 0u); //~ never: off by one
        for (var d = lid; d < params.dim; d += WG) {
            let here = vec2<u32>(key_at(base + d), d);
            if (here.x > best.x && precedes(last, here)) {
                best = here;
            }
        }
        last = best_of(best, lid);
        if (lid == 0u) {
            put(row, j, x[base + last.y], last.y);
        }
    }
}
