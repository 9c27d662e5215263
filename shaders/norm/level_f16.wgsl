// scales[t] = max_b tops[t, b]; halves[t, b] = halves[t, b] tops[t, b] / scales[t], and 0 where all
// tops are 0
// tops [rows, dim / each] f32, powers of two and zeros, scales [rows] f32, halves [rows, dim / 2]
// words of two f16, in place, with pitches as in pack_f16.wgsl. The kernel gets rows in which every
// `each` elements are divided by their own element of tops (matmul_tile128_glu.wgsl). It leaves
// rows that are divided by one scale each, as in pack_f16.wgsl. dim and each are multiples of 4.
// One workgroup per row.
// Needs: workgroup_number (grid.wgsl), reduce_max (reduce.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, each: u32, row_pitch: u32, slab_pitch: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> tops: array<f32>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;
@group(0) @binding(3) var<storage, read_write> halves: array<vec2<u32>>;

const WG = 256u;

@compute @workgroup_size(WG)
fn level_f16(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let parts = params.dim / params.each;
    var most = 0.0;
    for (var part = lid; part < parts; part += WG) {
        most = max(most, tops[row * parts + part]);
    }
    most = reduce_max(most, lid);
    if (lid == 0u) {
        scales[row] = most;
    }
    let scale = select(most, 1.0, most == 0.0);
    let quads = params.dim >> 2u;
    for (var quad = lid; quad < quads; quad += WG) {
        let top = tops[row * parts + (quad << 2u) / params.each];
        if (top != scale) { //~ neutral: guard dropped
            let at = row * params.row_pitch + (quad >> 2u) * params.slab_pitch + (quad & 3u);
            let less = top / scale;
            halves[at] = vec2<u32>(pack2x16float(unpack2x16float(halves[at].x) * less), pack2x16float(unpack2x16float(halves[at].y) * less));
        }
    }
}
