// scales[t] = the power of two 2^e for which 2^13 <= max_d |x[t, d]| / 2^e < 2^14, 0 for a row of
// zeros, 1 unless `scaled`; halves[t] = x[t] / scales[t] in f16
// x [rows, dim] f32, dim a multiple of 4, scales [rows] f32, halves [rows, dim / 2] words, either
// row by row, or 16 columns of all rows together. The pitches decide the order: the distances, in
// vectors of four, from row to row and from 16 columns to the next 16. half_scale.wgsl gives the
// reason for the scales. One workgroup per row.
// Needs: workgroup_number (grid.wgsl), reduce_max (reduce.wgsl), half_scale, kept_scale,
// halves_of_quad (half_scale.wgsl). Gives: WG.
struct Params { dim: u32, rows: u32, row_pitch: u32, slab_pitch: u32, scaled: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;
@group(0) @binding(3) var<storage, read_write> halves: array<vec2<u32>>;

const WG = 256u;

@compute @workgroup_size(WG)
fn pack_f16(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) extents: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let row = workgroup_number(id, extents);
    if (row >= params.rows) {
        return;
    }
    let quads = params.dim >> 2u;
    var most = vec4<f32>(0.0);
    for (var quad = lid; quad < quads; quad += WG) {
        most = max(most, abs(x[row * quads + quad]));
    }
    let largest = reduce_max(max(max(most.x, most.y), max(most.z, most.w)), lid);
    let scale = select(1.0, half_scale(largest), params.scaled == 1u);
    if (lid == 0u) {
        scales[row] = select(1.0, kept_scale(largest), params.scaled == 1u);
    }
    for (var quad = lid; quad < quads; quad += WG) {
        halves[row * params.row_pitch + (quad >> 2u) * params.slab_pitch + (quad & 3u)] = halves_of_quad(x[row * quads + quad] / scale);
    }
}
