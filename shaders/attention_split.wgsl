// partial[t, n, s] = (sum_j e^(p_j - m) v_j, m, sum_j e^(p_j - m)) with p_j = cap(scale q[t, n] . k_j) and m = max_j p_j, over the s-th part of the keys
// of attention.wgsl, whose operands these are; attention_merge.wgsl joins the parts. One workgroup for HEADS heads that share their keys and for
// one part: `lanes` threads to a key, each with 16 elements of the head, quads `lanes` apart; every group of lanes keeps a maximum of its own.
struct Params { heads: u32, kv_heads: u32, head_dim: u32, rows: u32, capacity: u32, causal: u32, window: u32, splits: u32, exchange: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> partial: array<f32>;

const WG = 128u;
const LOWEST = -3.0e38;
var<workgroup> gathered: array<vec4<f32>, 4u * WG>;

// cap(scale * sum), or the lowest number for a key past the part.
fn score(sums: vec4<f32>, inside: bool) -> vec4<f32> {
    var s = sums * params.scale;
    if (params.softcap > 0.0) {
        // Drivers return NaN from tanh of large arguments; 15 is past the last f32 below one.
        s = params.softcap * tanh(clamp(s / params.softcap, vec4<f32>(-15.0), vec4<f32>(15.0)));
    }
    return select(vec4<f32>(LOWEST), s, inside);
}

@compute @workgroup_size(WG)
fn attention_split(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let sets = params.heads / HEADS;
    let t = number / (sets * params.splits);
    if (t >= params.rows) {
        return;
    }
    let split = number % params.splits;
    let first_head = (number / params.splits) % sets * HEADS;
    let kv_head = first_head / (params.heads / params.kv_heads);
    let quads = params.head_dim >> 2u;
    let lanes = quads >> 2u;
    let lane = lid % lanes;
    let groups = WG / lanes;
    let width = params.kv_heads * params.head_dim;
    let base = sequences[t] * params.capacity;
    let part = attention_part(ends[t] + params.causal, positions[t] + 1u, params.window, params.splits, split);
    var query: array<array<vec4<f32>, 4>, HEADS>;
    var acc: array<array<vec4<f32>, 4>, HEADS>;
    for (var h = 0u; h < HEADS; h++) {
        for (var j = 0u; j < 4u; j++) {
            query[h][j] = q[(t * params.heads + first_head + h) * quads + lane + lanes * j];
        }
    }
    var most = vec4<f32>(LOWEST);
    var total = vec4<f32>(0.0);
    for (var tile = part.x; tile < part.y; tile += groups) {
        let key = tile + lid / lanes;
        let row = base + key % params.capacity;
        var sums = vec4<f32>(0.0);
        for (var j = 0u; j < 4u; j++) {
            let k = k_state_load4(row, width, kv_head * quads + lane + lanes * j);
            for (var h = 0u; h < HEADS; h++) {
                sums[h] += dot(query[h][j], k);
            }
        }
        let s = score(lanes_add4(sums, lanes, lid), key < part.y);
        let new_most = max(most, s);
        let shrink = exp(most - new_most);
        let p = select(vec4<f32>(0.0), exp(s - new_most), key < part.y);
        total = total * shrink + p;
        most = new_most;
        for (var j = 0u; j < 4u; j++) {
            let v = v_state_load4(row, width, kv_head * quads + lane + lanes * j);
            for (var h = 0u; h < HEADS; h++) {
                acc[h][j] = acc[h][j] * shrink[h] + p[h] * v;
            }
        }
    }
    for (var h = 0u; h < HEADS; h++) {
        let all = reduce_max(most[h], lid);
        let factor = exp(most[h] - all);
        let sum = reduce_add(select(0.0, total[h] * factor, lane == 0u), lid);
        for (var j = 0u; j < 4u; j++) {
            gathered[4u * lid + j] = acc[h][j] * factor;
        }
        workgroupBarrier();
        let start = ((t * params.heads + first_head + h) * params.splits + split) * (params.head_dim + 2u);
        for (var d = lid; d < params.head_dim; d += WG) {
            let quad = d >> 2u;
            var value = 0.0;
            for (var g = 0u; g < groups; g++) {
                value += gathered[4u * (g * lanes + quad % lanes) + quad / lanes][d & 3u];
            }
            partial[start + d] = value;
        }
        if (lid == 0u) {
            partial[start + params.head_dim] = all;
            partial[start + params.head_dim + 1u] = sum;
        }
        workgroupBarrier();
    }
}
