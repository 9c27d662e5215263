// What attention_merge.wgsl makes, in 8 bits (pack_q8.wgsl); heads are whole blocks of 32.
@group(0) @binding(4) var<storage, read_write> packed: array<vec4<u32>>;

fn merged_store(t: u32, number: u32, lid: u32) {
    let blocks = params.head_dim >> 5u;
    if (lid < blocks) {
        var v: array<vec4<f32>, 8>;
        for (var j = 0u; j < 32u; j++) {
            v[j >> 2u][j & 3u] = merged[32u * lid + j];
        }
        pack_q8_store(t, params.heads * params.head_dim, (number % params.heads) * blocks + lid, v);
    }
}
