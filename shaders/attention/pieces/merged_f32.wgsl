// The result of attention_merge.wgsl as f32.
// Needs: params.head_dim. Gives: y, merged_store.
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

fn merged_store(t: u32, number: u32, quad: u32, inside: bool, v: vec4<f32>, lid: u32) {
    if (inside) { //~ clamped: guard dropped
        y[number * (params.head_dim >> 2u) + quad] = v;
    }
}
