// y[t, n] = sum_s p[s] v[s], p = softmax_s(cap(scale q[t, n] . k[s])), as attention.wgsl, for many rows and heads of 128, through cooperative matrices
// Operands are those of attention.wgsl; products are of f16 with f32 sums. One workgroup for 64 rows of one head walks the keys twice, 32 at
// a time: for the largest score of every row, then for the weights and what they sum, which so need no correction on the way. Each
// subgroup has 16 rows. Rows of a tile may belong to several sequences, whose keys follow one another.
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
var<workgroup> kv: array<vec4<f16>, KEYS * WIDE>;
var<workgroup> ps: array<vec4<f16>, TILE * PITCH>;
var<workgroup> scores: array<f32, TILE * KEYS>;

// Columns 32 c .. of the scaled queries, as f16.
fn stage_q(t0: u32, head: u32, c: u32, lid: u32) {
    for (var i = lid; i < TILE * 8u; i += 128u) {
        let t = min(t0 + (i >> 3u), params.rows - 1u);
        ps[(i >> 3u) * PITCH + (i & 7u)] = vec4<f16>(q[(t * params.heads + head) * QUADS + 8u * c + (i & 7u)] * params.scale);
    }
    workgroupBarrier();
}

fn stage_k(base: u32, key0: u32, last: u32, at: u32, width: u32, lid: u32) {
    for (var i = lid; i < KEYS * QUADS; i += 128u) {
        let row = base + min(key0 + (i >> 5u), last) % params.capacity;
        kv[(i >> 5u) * WIDE + (i & 31u)] = vec4<f16>(k_state_load4(row, width, at + (i & 31u)));
    }
    workgroupBarrier();
}

fn stage_v(base: u32, key0: u32, last: u32, at: u32, width: u32, lid: u32) {
    for (var i = lid; i < KEYS * QUADS; i += 128u) {
        let row = base + min(key0 + (i >> 5u), last) % params.capacity;
        kv[(i >> 5u) * WIDE + (i & 31u)] = vec4<f16>(v_state_load4(row, width, at + (i & 31u)));
    }
}

fn capped(s: f32) -> f32 {
    // Drivers return NaN from tanh of large arguments; 15 is past the last f32 below one.
    return select(s, params.softcap * tanh(clamp(s / max(params.softcap, 1e-30), -15.0, 15.0)), params.softcap > 0.0);
}

// Writes 16 columns of the results that lie in `scores`.
fn finish(t: u32, head: u32, column: u32, total: f32, lid: u32) {
    workgroupBarrier();
    let half = (lid & 1u) * 8u;
    if (t < params.rows) {
        for (var i = 0u; i < 8u; i++) {
            y[(t * params.heads + head) * 128u + column + half + i] = scores[(lid >> 1u) * KEYS + half + i] / total;
        }
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
    var o0 = coop_mat16x16<f32, C>();
    var o1 = coop_mat16x16<f32, C>();
    var o2 = coop_mat16x16<f32, C>();
    var o3 = coop_mat16x16<f32, C>();
    var o4 = coop_mat16x16<f32, C>();
    var o5 = coop_mat16x16<f32, C>();
    var o6 = coop_mat16x16<f32, C>();
    var o7 = coop_mat16x16<f32, C>();
    for (var sweep = 0u; sweep < 2u; sweep++) {
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
            for (var key0 = min(from_key, to_key) / KEYS * KEYS; key0 < to_key; key0 += KEYS) {
                stage_k(base, key0, to_key - 1u, quad, width, lid);
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
                let at = row0 * KEYS;
                let next = at + 16u;
                let pitch = KEYS;
                coopStoreT(s0, &scores[at], pitch);
                coopStoreT(s1, &scores[next], pitch);
                workgroupBarrier();
                if (sweep == 1u) {
                    stage_v(base, key0, to_key - 1u, quad, width, lid);
                }
                for (var i = 0u; i < 4u; i++) {
                    let key = key0 + half + 4u * i;
                    let from_scores = row * KEYS + half + 4u * i;
                    let s = vec4<f32>(capped(scores[from_scores]), capped(scores[from_scores + 1u]), capped(scores[from_scores + 2u]), capped(scores[from_scores + 3u]));
                    let keys = vec4<u32>(key, key + 1u, key + 2u, key + 3u);
                    let seen = (keys >= vec4<u32>(start)) & (keys < vec4<u32>(end)) & vec4<bool>(mine);
                    if (sweep == 0u) {
                        let low = select(vec4<f32>(LOWEST), s, seen);
                        most = max(most, max(max(low.x, low.y), max(low.z, low.w)));
                    } else {
                        let p = select(vec4<f32>(0.0), exp(s - most), seen);
                        total += p.x + p.y + p.z + p.w;
                        ps[row * PITCH + (half >> 2u) + i] = vec4<f16>(p);
                    }
                }
                workgroupBarrier();
                // Once in the second sweep. naga takes a condition of a loop for uniform, and of a branch on a variable not.
                for (var times = 0u; times < sweep; times++) {
                    let p0 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH], PITCH);
                    let p1 = coopLoadT<coop_mat16x16<f16, A>>(&ps[row0 * PITCH + 4u], PITCH);
                    o0 = coopMultiplyAdd(p0, coopLoadT<coop_mat16x16<f16, B>>(&kv[0u], WIDE), o0);
                    o0 = coopMultiplyAdd(p1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 0u], WIDE), o0);
                    o1 = coopMultiplyAdd(p0, coopLoadT<coop_mat16x16<f16, B>>(&kv[4u], WIDE), o1);
                    o1 = coopMultiplyAdd(p1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 4u], WIDE), o1);
                    o2 = coopMultiplyAdd(p0, coopLoadT<coop_mat16x16<f16, B>>(&kv[8u], WIDE), o2);
                    o2 = coopMultiplyAdd(p1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 8u], WIDE), o2);
                    o3 = coopMultiplyAdd(p0, coopLoadT<coop_mat16x16<f16, B>>(&kv[12u], WIDE), o3);
                    o3 = coopMultiplyAdd(p1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 12u], WIDE), o3);
                    o4 = coopMultiplyAdd(p0, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u], WIDE), o4);
                    o4 = coopMultiplyAdd(p1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 16u], WIDE), o4);
                    o5 = coopMultiplyAdd(p0, coopLoadT<coop_mat16x16<f16, B>>(&kv[20u], WIDE), o5);
                    o5 = coopMultiplyAdd(p1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 20u], WIDE), o5);
                    o6 = coopMultiplyAdd(p0, coopLoadT<coop_mat16x16<f16, B>>(&kv[24u], WIDE), o6);
                    o6 = coopMultiplyAdd(p1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 24u], WIDE), o6);
                    o7 = coopMultiplyAdd(p0, coopLoadT<coop_mat16x16<f16, B>>(&kv[28u], WIDE), o7);
                    o7 = coopMultiplyAdd(p1, coopLoadT<coop_mat16x16<f16, B>>(&kv[16u * WIDE + 28u], WIDE), o7);
                    workgroupBarrier();
                }
            }
            first = past;
        }
        // The halves of a row agree on its maximum, and in the end on its sum.
        scores[lid] = select(total, most, sweep == 0u);
        workgroupBarrier();
        let other = scores[lid ^ 1u];
        workgroupBarrier();
        if (sweep == 0u) {
            most = max(most, other);
        } else {
            total += other;
        }
    }
    let out = row0 * KEYS;
    let out_pitch = KEYS;
    coopStoreT(o0, &scores[out], out_pitch);
    finish(t, head, 0u, total, lid);
    coopStoreT(o1, &scores[out], out_pitch);
    finish(t, head, 16u, total, lid);
    coopStoreT(o2, &scores[out], out_pitch);
    finish(t, head, 32u, total, lid);
    coopStoreT(o3, &scores[out], out_pitch);
    finish(t, head, 48u, total, lid);
    coopStoreT(o4, &scores[out], out_pitch);
    finish(t, head, 64u, total, lid);
    coopStoreT(o5, &scores[out], out_pitch);
    finish(t, head, 80u, total, lid);
    coopStoreT(o6, &scores[out], out_pitch);
    finish(t, head, 96u, total, lid);
    coopStoreT(o7, &scores[out], out_pitch);
    finish(t, head, 112u, total, lid);
}
