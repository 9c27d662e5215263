// The result of attention_merge_parts.wgsl in f16, packed as in pack_f16.wgsl with scales of one.
// scales [rows] f32, halves in the order of its pitches.
// Needs: params.row_pitch, params.slab_pitch, halves_of_quad. Gives: scales, halves, joined_store.
@group(0) @binding(2) var<storage, read_write> scales: array<f32>;
@group(0) @binding(3) var<storage, read_write> halves: array<vec2<u32>>;

// `at`: the number of the quad among all rows, each of `quads`.
fn joined_store(at: u32, quads: u32, v: vec4<f32>) {
    let row = at / quads;
    let quad = at % quads;
    if (quad == 0u) { //~ twice: off by one, guard dropped
        scales[row] = 1.0;
    }
    halves[row * params.row_pitch + (quad >> 2u) * params.slab_pitch + (quad & 3u)] = halves_of_quad(v);
}
