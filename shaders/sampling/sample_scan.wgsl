// strips[o, s] = (key and id of the first largest element of strip s of logits[o], maximum of
// raw[o] there and sum of exp(raw - maximum)), and after the strips of a row its position and its
// sequence
// logits read as bits, raw [rows, vocab] f32; out_rows [rows], positions, sequences [T] u32; strips
// [rows, strips + 1] of 4 words. A workgroup has a slice of WG * per_thread ids. Each thread reads
// every WG-th id of the slice. The ids of 32 neighbouring threads are a strip.
// Needs: workgroup_number (grid.wgsl), first_of, NAN_KEY, order_key (order.wgsl). Gives: WG.
struct Params { vocab: u32, rows: u32, per_thread: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<u32>;
@group(0) @binding(2) var<storage, read> raw: array<f32>;
@group(0) @binding(3) var<storage, read> out_rows: array<u32>;
@group(0) @binding(4) var<storage, read> positions: array<u32>;
@group(0) @binding(5) var<storage, read> sequences: array<u32>;
@group(0) @binding(6) var<storage, read_write> strips: array<vec4<u32>>;

const WG = 256u;
const LANES = 32u;
const LOWEST = -3.4028234e38;
var<workgroup> bests: array<vec2<u32>, WG>;
var<workgroup> sums: array<vec2<f32>, WG>;

@compute @workgroup_size(WG)
fn sample_scan(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let per_slice = params.per_thread * WG;
    let slices = (params.vocab + per_slice - 1u) / per_slice;
    let row = number / slices;
    if (row >= params.rows) { //~ whole: comparison, guard dropped
        return;
    }
    let slice = number % slices;
    read_slice(row * params.vocab, slice * per_slice + lid, lid);
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half = half / 2u) {
        if (lid % LANES < half) { //~ order: product, comparison, guard dropped
            bests[lid] = first_of(bests[lid], bests[lid + half]);
            sums[lid] = sum_of(sums[lid], sums[lid + half]);
        }
        workgroupBarrier();
    }
    let first = row * (slices * (WG / LANES) + 1u);
    if (lid % LANES == 0u) { //~ seen: guard dropped, off by one
        strips[first + (slice * WG + lid) / LANES] = vec4<u32>(bests[lid], bitcast<vec2<u32>>(sums[lid]));
    }
    if (slice == 0u && lid == 0u) { //~ twice: off by one, guard dropped
        let t = out_rows[row];
        strips[first + slices * (WG / LANES)] = vec4<u32>(positions[t], sequences[t], 0u, 0u); //~ unused: off by one
    }
}

// Four ids at a time, so that their loads overlap. Past the end the last id is read again: it
// changes no maximum, and its terms in the sum are 0.
fn read_slice(base: u32, first: u32, lid: u32) {
    var best = vec2<u32>(NAN_KEY, first);
    var top = LOWEST;
    var sum = 0.0;
    for (var j = 0u; j < params.per_thread; j += 4u) {
        let v = first + (j + vec4<u32>(0u, 1u, 2u, 3u)) * WG;
        let inside = v < vec4<u32>(params.vocab);
        let at = base + min(v, vec4<u32>(params.vocab - 1u));
        let bits = vec4<u32>(logits[at.x], logits[at.y], logits[at.z], logits[at.w]);
        let values = vec4<f32>(raw[at.x], raw[at.y], raw[at.z], raw[at.w]);
        best = first_of(best, vec2<u32>(select(NAN_KEY, order_key(bits.x), inside.x), v.x));
        best = first_of(best, vec2<u32>(select(NAN_KEY, order_key(bits.y), inside.y), v.y));
        best = first_of(best, vec2<u32>(select(NAN_KEY, order_key(bits.z), inside.z), v.z));
        best = first_of(best, vec2<u32>(select(NAN_KEY, order_key(bits.w), inside.w), v.w)); //~ clamped: component
        let higher = max(top, max(max(values.x, values.y), max(values.z, values.w)));
        sum = sum * exp(top - higher) + dot(select(vec4<f32>(0.0), exp(values - higher), inside), vec4<f32>(1.0));
        top = higher;
    }
    bests[lid] = best;
    sums[lid] = vec2<f32>(top, sum);
}

// Adds two sums of exponentials, each relative to its own maximum.
fn sum_of(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let top = max(a.x, b.x);
    return vec2<f32>(top, a.y * exp(a.x - top) + b.y * exp(b.x - top));
}
