// slots = the slots 0 .. T k, sorted by the expert that serves them, in order within an expert
// tiles[i] = (expert, index of its first slot in `slots`, number of slots), up to `tile` slots of
// one expert; (0, 0, 0) past the last tile
// step_rows [1] u32 (T), experts [T, k] u32, slots [T k] u32, tiles [tiles, 3] u32. One workgroup
// per expert. It counts the slots of all experts to find where its own start, then places its own.
// Needs: workgroup_number (grid.wgsl). Gives: nothing.
struct Params { experts: u32, k: u32, tile: u32, tiles: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> step_rows: array<u32>;
@group(0) @binding(2) var<storage, read> experts: array<u32>;
@group(0) @binding(3) var<storage, read_write> slots: array<u32>;
@group(0) @binding(4) var<storage, read_write> tiles: array<u32>;

const WG = 256u;
// MOST is MAX_EXPERTS of experts/route.rs.
const MOST = 1024u;
var<workgroup> counts: array<atomic<u32>, MOST>;
var<workgroup> found: array<u32, WG>;

@compute @workgroup_size(WG)
fn group_experts(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let expert = workgroup_number(id, extents);
    if (expert >= params.experts) {
        return;
    }
    for (var e = lid; e < params.experts; e += WG) { //~ surplus: comparison
        atomicStore(&counts[e], 0u);
    }
    workgroupBarrier();
    // Every thread has one stretch of slots, so the slots of an expert stay in order.
    let all = step_rows[0] * params.k;
    let stretch = (all + WG - 1u) / WG; //~ free: sign, product
    let start = lid * stretch;
    let to = min(start + stretch, all); //~ free: sign
    var mine = 0u;
    for (var s = start; s < to; s++) {
        atomicAdd(&counts[experts[s]], 1u);
        mine += u32(experts[s] == expert);
    }
    found[lid] = mine;
    workgroupBarrier();
    var first = 0u;
    var tile = 0u;
    for (var e = 0u; e < expert; e++) {
        let count = atomicLoad(&counts[e]);
        first += count;
        tile += (count + params.tile - 1u) / params.tile;
    }
    var at = first;
    for (var i = 0u; i < lid; i++) {
        at += found[i];
    }
    for (var s = start; s < to; s++) {
        if (experts[s] == expert) {
            slots[at] = s;
            at++;
        }
    }
    let count = atomicLoad(&counts[expert]);
    let end = tile + (count + params.tile - 1u) / params.tile;
    for (var i = tile + lid; i < end; i += WG) {
        let done = (i - tile) * params.tile;
        put(i, expert, first + done, min(params.tile, count - done));
    }
    // The workgroup of the last expert clears the tiles that no expert fills.
    let last = select(end, params.tiles, expert + 1u == params.experts); //~ race: off by one, arms swapped
    for (var i = end + lid; i < last; i += WG) {
        put(i, 0u, 0u, 0u);
    }
}

fn put(i: u32, expert: u32, first: u32, count: u32) {
    tiles[3u * i] = expert;
    tiles[3u * i + 1u] = first;
    tiles[3u * i + 2u] = count;
}
