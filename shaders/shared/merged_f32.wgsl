// What attention_merge.wgsl makes, as floats.
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn merged_store(t: u32, number: u32, lid: u32) {
    for (var d = lid; d < params.head_dim; d += WG) {
        y[number * params.head_dim + d] = merged[d];
    }
}
