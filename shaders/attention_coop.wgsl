// y[t, n] = sum_s p[s] v[s], p = softmax_s(cap(scale q[t, n] . k[s])), as attention.wgsl, for many rows and heads of 128, through cooperative matrices
// Operands are those of attention.wgsl; products are of f16 with f32 sums. One workgroup for 64 rows of one head walks the keys, 32 at a
// time, and loads the next ones meanwhile; each subgroup has 16 rows. Weights are relative to a score of the row that is raised only where
// another is larger by RAISE, so that sums are rarely scaled (as in FlashAttention-4). Rows of a tile may belong to several sequences,
// whose keys follow one another.
enable f16;
enable wgpu_cooperative_matrix;
struct Params { heads: u32, kv_heads: u32, rows: u32, capacity: u32, causal: u32, window: u32, scale: f32, softcap: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> sequences: array<u32>;
@group(0) @binding(5) var<storage, read> k_state: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> v_state: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>;

const TILE = 64u;
const KEYS = 32u;
const QUADS = 32u;
// Rows of 32 and of 128 elements in workgroup memory, padded against bank conflicts; in vectors of four.
const PITCH = 10u;
const WIDE = QUADS + 2u;
const LOWEST = -3.0e38;
// e^8 and its multiples are far from the largest f16.
const RAISE = 8.0;
var<workgroup> kv: array<vec4<f16>, KEYS * WIDE>;
var<workgroup> ps: array<vec4<f16>, TILE * PITCH>;
var<workgroup> scores: array<f32, TILE * KEYS>;

// What scales a row's sums, and which subgroups have rows to scale.
var<workgroup> shrinks: array<f32, TILE>;
var<workgroup> raised: array<u32, 4>;

// Columns 32 c .. of the scaled queries, as f16.
fn stage_q(t0: u32, head: u32, c: u32, lid: u32) {
    for (var i = lid; i < TILE * 8u; i += 128u) {
        let t = min(t0 + (i >> 3u), params.rows - 1u);
        ps[(i >> 3u) * PITCH + (i & 7u)] = vec4<f16>(q[(t * params.heads + head) * QUADS + 8u * c + (i & 7u)] * params.scale);
    }
    workgroupBarrier();
}

@compute @workgroup_size(128)
fn attention_coop(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) subgroup: u32) {
    let head = id.x;
    let t0 = id.y * TILE;
    let quad = head / (params.heads / params.kv_heads) * QUADS;
    let width = params.kv_heads * 128u;
    let row0 = subgroup * 16u;
    // Softmax: two threads to a row, 16 keys each.
    let row = lid >> 1u;
    let half = (lid & 1u) * 16u;
    let t = t0 + row;
    let here = min(t, params.rows - 1u);
    let end = select(0u, ends[here] + params.causal, t < params.rows);
    let start = select(0u, positions[here] + 1u - min(positions[here] + 1u, params.window), params.window > 0u);
    let rows = min(TILE, params.rows - t0);
    stage_q(t0, head, 0u, lid);
    let a0 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH], PITCH);
    let a1 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH + 4u], PITCH);
    workgroupBarrier();
    stage_q(t0, head, 1u, lid);
    let a2 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH], PITCH);
    let a3 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH + 4u], PITCH);
    workgroupBarrier();
    stage_q(t0, head, 2u, lid);
    let a4 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH], PITCH);
    let a5 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH + 4u], PITCH);
    workgroupBarrier();
    stage_q(t0, head, 3u, lid);
    let a6 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH], PITCH);
    let a7 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH + 4u], PITCH);
    workgroupBarrier();
    var most = LOWEST;
    var total = 0.0;
    var any_before = false;
    var o0 = coop_mat16x16<f32, C>();
    var o1 = coop_mat16x16<f32, C>();
    var o2 = coop_mat16x16<f32, C>();
    var o3 = coop_mat16x16<f32, C>();
    var o4 = coop_mat16x16<f32, C>();
    var o5 = coop_mat16x16<f32, C>();
    var o6 = coop_mat16x16<f32, C>();
    var o7 = coop_mat16x16<f32, C>();
    let out = row0 * KEYS;
    let pitch = KEYS;
    // Bounds are read from the operands, so that they are uniform for sure.
    for (var first = 0u; first < rows;) {
        let owner = sequences[t0 + first];
        var past = first;
        var from_key = 0xffffffffu;
        var to_key = 0u;
        while (past < rows && sequences[min(t0 + past, params.rows - 1u)] == owner) {
            let next = positions[t0 + past] + 1u;
            from_key = min(from_key, select(0u, next - min(next, params.window), params.window > 0u));
            to_key = max(to_key, ends[t0 + past] + params.causal);
            past++;
        }
        let mine = row >= first && row < past;
        let base = owner * params.capacity;
        let key_start = min(from_key, to_key) / KEYS * KEYS;
        var ahead = load_k(base, key_start, max(to_key, 1u) - 1u, quad, width, lid);
        for (var key0 = key_start; key0 < to_key; key0 += KEYS) {
            workgroupBarrier();
            stage(ahead, lid);
            workgroupBarrier();
            let values = load_v(base, key0, to_key - 1u, quad, width, lid);
            var s0 = coop_mat16x16<f32, C>();
            var s1 = coop_mat16x16<f32, C>();
            s0 = coopMultiplyAdd(a0, coopLoad<coop_mat16x16<f16, B>>(&kv[0u * WIDE + 0u], WIDE), s0);
            s1 = coopMultiplyAdd(a0, coopLoad<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 0u], WIDE), s1);
            s0 = coopMultiplyAdd(a1, coopLoad<coop_mat16x16<f16, B>>(&kv[0u * WIDE + 4u], WIDE), s0);
            s1 = coopMultiplyAdd(a1, coopLoad<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 4u], WIDE), s1);
            s0 = coopMultiplyAdd(a2, coopLoad<coop_mat16x16<f16, B>>(&kv[0u * WIDE + 8u], WIDE), s0);
            s1 = coopMultiplyAdd(a2, coopLoad<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 8u], WIDE), s1);
            s0 = coopMultiplyAdd(a3, coopLoad<coop_mat16x16<f16, B>>(&kv[0u * WIDE + 12u], WIDE), s0);
            s1 = coopMultiplyAdd(a3, coopLoad<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 12u], WIDE), s1);
            s0 = coopMultiplyAdd(a4, coopLoad<coop_mat16x16<f16, B>>(&kv[0u * WIDE + 16u], WIDE), s0);
            s1 = coopMultiplyAdd(a4, coopLoad<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 16u], WIDE), s1);
            s0 = coopMultiplyAdd(a5, coopLoad<coop_mat16x16<f16, B>>(&kv[0u * WIDE + 20u], WIDE), s0);
            s1 = coopMultiplyAdd(a5, coopLoad<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 20u], WIDE), s1);
            s0 = coopMultiplyAdd(a6, coopLoad<coop_mat16x16<f16, B>>(&kv[0u * WIDE + 24u], WIDE), s0);
            s1 = coopMultiplyAdd(a6, coopLoad<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 24u], WIDE), s1);
            s0 = coopMultiplyAdd(a7, coopLoad<coop_mat16x16<f16, B>>(&kv[0u * WIDE + 28u], WIDE), s0);
            s1 = coopMultiplyAdd(a7, coopLoad<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 28u], WIDE), s1);
            let beside = out + 16u;
            coopStoreT(s0, &scores[out], pitch);
            coopStoreT(s1, &scores[beside], pitch);
            workgroupBarrier();
            stage(values, lid);
            ahead = load_k(base, key0 + KEYS, to_key - 1u, quad, width, lid);
            let of_row = row * KEYS + half;
            let w0 = weigh(of_row, key0 + half, start, end, mine);
            let w1 = weigh(of_row + 4u, key0 + half + 4u, start, end, mine);
            let w2 = weigh(of_row + 8u, key0 + half + 8u, start, end, mine);
            let w3 = weigh(of_row + 12u, key0 + half + 12u, start, end, mine);
            let largest = max(max(w0, w1), max(w2, w3));
            var tile_most = max(max(largest.x, largest.y), max(largest.z, largest.w));
            tile_most = max(tile_most, subgroupShuffleXor(tile_most, 1u));
            let raise = tile_most > most + RAISE;
            let new_most = select(most, tile_most, raise);
            let shrink = exp(most - new_most);
            let scaled = subgroupAny(raise && any_before);
            any_before = any_before || new_most > LOWEST;
            most = new_most;
            shrinks[row] = shrink;
            raised[subgroup] = u32(scaled);
            let p0 = select(vec4<f32>(0.0), exp(w0 - most), w0 > vec4<f32>(LOWEST));
            let p1 = select(vec4<f32>(0.0), exp(w1 - most), w1 > vec4<f32>(LOWEST));
            let p2 = select(vec4<f32>(0.0), exp(w2 - most), w2 > vec4<f32>(LOWEST));
            let p3 = select(vec4<f32>(0.0), exp(w3 - most), w3 > vec4<f32>(LOWEST));
            total = total * shrink + dot(p0 + p1 + (p2 + p3), vec4<f32>(1.0));
            let to = row * PITCH + (half >> 2u);
            ps[to] = vec4<f16>(p0);
            ps[to + 1u] = vec4<f16>(p1);
            ps[to + 2u] = vec4<f16>(p2);
            ps[to + 3u] = vec4<f16>(p3);
            workgroupBarrier();
            // Once or not at all, for the whole workgroup. naga takes a condition of a loop for uniform, and of a branch on a variable not.
            let changed = raised[0] | raised[1] | raised[2] | raised[3];
            for (var times = 0u; times < changed; times++) {
                coopStoreT(o0, &scores[out], pitch);
                shrink_scores(lid);
                o0 = coopLoadT<coop_mat16x16<f32, C>>(&scores[out], pitch);
                coopStoreT(o1, &scores[out], pitch);
                shrink_scores(lid);
                o1 = coopLoadT<coop_mat16x16<f32, C>>(&scores[out], pitch);
                coopStoreT(o2, &scores[out], pitch);
                shrink_scores(lid);
                o2 = coopLoadT<coop_mat16x16<f32, C>>(&scores[out], pitch);
                coopStoreT(o3, &scores[out], pitch);
                shrink_scores(lid);
                o3 = coopLoadT<coop_mat16x16<f32, C>>(&scores[out], pitch);
                coopStoreT(o4, &scores[out], pitch);
                shrink_scores(lid);
                o4 = coopLoadT<coop_mat16x16<f32, C>>(&scores[out], pitch);
                coopStoreT(o5, &scores[out], pitch);
                shrink_scores(lid);
                o5 = coopLoadT<coop_mat16x16<f32, C>>(&scores[out], pitch);
                coopStoreT(o6, &scores[out], pitch);
                shrink_scores(lid);
                o6 = coopLoadT<coop_mat16x16<f32, C>>(&scores[out], pitch);
                coopStoreT(o7, &scores[out], pitch);
                shrink_scores(lid);
                o7 = coopLoadT<coop_mat16x16<f32, C>>(&scores[out], pitch);
                workgroupBarrier();
            }
            let q0 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH], PITCH);
            let q1 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH + 4u], PITCH);
            o0 = coopMultiplyAdd(q0, coopLoadT<coop_mat16x16<f16, B>>(&kv[0u], WIDE), o0);
            o0 = coopMultiplyAdd(q1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 0u], WIDE), o0);
            o1 = coopMultiplyAdd(q0, coopLoadT<coop_mat16x16<f16, B>>(&kv[4u], WIDE), o1);
            o1 = coopMultiplyAdd(q1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 4u], WIDE), o1);
            o2 = coopMultiplyAdd(q0, coopLoadT<coop_mat16x16<f16, B>>(&kv[8u], WIDE), o2);
            o2 = coopMultiplyAdd(q1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 8u], WIDE), o2);
            o3 = coopMultiplyAdd(q0, coopLoadT<coop_mat16x16<f16, B>>(&kv[12u], WIDE), o3);
            o3 = coopMultiplyAdd(q1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 12u], WIDE), o3);
            o4 = coopMultiplyAdd(q0, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u], WIDE), o4);
            o4 = coopMultiplyAdd(q1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 16u], WIDE), o4);
            o5 = coopMultiplyAdd(q0, coopLoadT<coop_mat16x16<f16, B>>(&kv[20u], WIDE), o5);
            o5 = coopMultiplyAdd(q1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 20u], WIDE), o5);
            o6 = coopMultiplyAdd(q0, coopLoadT<coop_mat16x16<f16, B>>(&kv[24u], WIDE), o6);
            o6 = coopMultiplyAdd(q1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 24u], WIDE), o6);
            o7 = coopMultiplyAdd(q0, coopLoadT<coop_mat16x16<f16, B>>(&kv[28u], WIDE), o7);
            o7 = coopMultiplyAdd(q1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 28u], WIDE), o7);
        }
        first = past;
    }
    workgroupBarrier();
    // Two threads share a row.
    total += subgroupShuffleXor(total, 1u);
    coopStoreT(o0, &scores[out], pitch);
    finish(t, head, 0u, total, lid);
    coopStoreT(o1, &scores[out], pitch);
    finish(t, head, 16u, total, lid);
    coopStoreT(o2, &scores[out], pitch);
    finish(t, head, 32u, total, lid);
    coopStoreT(o3, &scores[out], pitch);
    finish(t, head, 48u, total, lid);
    coopStoreT(o4, &scores[out], pitch);
    finish(t, head, 64u, total, lid);
    coopStoreT(o5, &scores[out], pitch);
    finish(t, head, 80u, total, lid);
    coopStoreT(o6, &scores[out], pitch);
    finish(t, head, 96u, total, lid);
    coopStoreT(o7, &scores[out], pitch);
    finish(t, head, 112u, total, lid);
}
