// The result of attention_merge_parts.wgsl in f32.
// Needs: nothing. Gives: y, joined_store.
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

// `at`: the number of the quad among all rows, each of `quads`.
fn joined_store(at: u32, quads: u32, v: vec4<f32>) {
    y[at] = v;
}
