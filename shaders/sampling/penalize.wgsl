// y[o, v] = l - (c frequency + presence) with l = logits / repetition where positive, logits *
// repetition elsewhere, for ids v that occur c > 0 times in the last last_n positions up to the
// row's own; other logits are copied
// logits, y [rows, vocab] f32; sampling [rows]; out_rows [rows], positions, sequences [T], tokens
// [S, capacity] u32. One workgroup makes BLOCK ids of a row and counts these ids in the row's
// history.
// Sources: Keskar et al. 2019, arXiv 1909.05858, section 4.1; OpenAI's API reference (frequency,
// presence).
// Needs: SampleParams (sampling.wgsl), workgroup_number (grid.wgsl). Gives: nothing.
struct Params { vocab: u32, rows: u32, capacity: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> sampling: array<SampleParams>;
@group(0) @binding(3) var<storage, read> out_rows: array<u32>;
@group(0) @binding(4) var<storage, read> positions: array<u32>;
@group(0) @binding(5) var<storage, read> sequences: array<u32>;
@group(0) @binding(6) var<storage, read> tokens: array<u32>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>;

const WG = 256u;
const BLOCK = 2048u;
// Zero at the start, like all workgroup memory.
var<workgroup> counts: array<atomic<u32>, BLOCK>;

@compute @workgroup_size(WG)
fn penalize(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let number = workgroup_number(id, extents);
    let blocks = (params.vocab + BLOCK - 1u) / BLOCK;
    let row = number / blocks;
    if (row >= params.rows) {
        return;
    }
    let first = number % blocks * BLOCK;
    let s = sampling[row];
    let t = out_rows[row];
    let end = positions[t] + 1u;
    let neutral = s.repetition == 1.0 && s.frequency == 0.0 && s.presence == 0.0;
    let start = select(end - min(end, s.last_n), end, neutral);
    for (var p = start + lid; p < end; p += WG) {
        let v = tokens[sequences[t] * params.capacity + p % params.capacity] - first;
        if (v < BLOCK) {
            atomicAdd(&counts[v], 1u);
        }
    }
    workgroupBarrier();
    for (var v = lid; v < min(BLOCK, params.vocab - first); v += WG) {
        let logit = logits[row * params.vocab + first + v];
        let count = atomicLoad(&counts[v]);
        let repeated = select(logit * s.repetition, logit / s.repetition, logit > 0.0); //~ meet: comparison
        let penalized = repeated - (f32(count) * s.frequency + s.presence);
        y[row * params.vocab + first + v] = select(logit, penalized, count > 0u);
    }
}
