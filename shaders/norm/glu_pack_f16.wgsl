// scales[t], halves[t] = activation(gate[t, d]) up[t, start + d] in f16, packed as in
// pack_f16.wgsl; activation is silu or gelu (tanh form)
// gate [rows, dim], up [rows, up_dim] f32; dim, up_dim and start multiples of 4; scales [rows] f32,
// halves in the order of its pitches. One workgroup per row. A thread holds four quads of the row
// and computes further quads twice.
// Needs: activation (slot activation), halves_of_quad, half_scale, kept_scale (half_scale.wgsl),
// workgroup_number (grid.wgsl), reduce_max (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, up_dim: u32, start: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> gate: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> up: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> scales: array<f32>;
@group(0) @binding(4) var<storage, read_write> halves: array<vec2<u32>>;

const WG = 1024u;

// A quad of the row, or the last quad again past the end, so that no load waits for a branch.
fn made(row: u32, quad: u32) -> vec4<f32> {
    let quads = params.dim >> 2u;
    let at = min(quad, quads - 1u); //~ seen: sign
    return activation(gate[row * quads + at]) * up[row * (params.up_dim >> 2u) + (params.start >> 2u) + at];
}

fn store(row: u32, quad: u32, v: vec4<f32>) {
    if (quad < (params.dim >> 2u)) {
        halves[row * params.row_pitch + (quad >> 2u) * params.slab_pitch + (quad & 3u)] = halves_of_quad(v);
    }
}

@compute @workgroup_size(WG)
fn glu_pack_f16(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let quads = params.dim >> 2u;
    let a = made(row, lid);
    var b = vec4<f32>(0.0);
    var c = vec4<f32>(0.0);
    var d = vec4<f32>(0.0);
    if (quads > WG) {
        b = made(row, lid + WG);
    }
    if (quads > 2u * WG) {
        c = made(row, lid + 2u * WG);
    }
    if (quads > 3u * WG) {
        d = made(row, lid + 3u * WG);
    }
    var most = max(max(abs(a), abs(b)), max(abs(c), abs(d)));
    for (var quad = lid + 4u * WG; quad < quads; quad += WG) { //~ clamped: comparison
        most = max(most, abs(made(row, quad)));
    }
    let largest = reduce_max(max(max(most.x, most.y), max(most.z, most.w)), lid);
    let scale = half_scale(largest);
    if (lid == 0u) {
        scales[row] = kept_scale(largest);
    }
    store(row, lid, a / scale);
    store(row, lid + WG, b / scale);
    store(row, lid + 2u * WG, c / scale);
    store(row, lid + 3u * WG, d / scale);
    for (var quad = lid + 4u * WG; quad < quads; quad += WG) { //~ clamped: comparison
        store(row, quad, made(row, quad) / scale);
    }
}
