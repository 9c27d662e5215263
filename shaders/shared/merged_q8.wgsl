// What attention_merge.wgsl makes, in 8 bits (pack_q8.wgsl); heads are whole blocks of 32.
@group(0) @binding(4) var<storage, read_write> packed: array<u32>;

fn merged_store(t: u32, number: u32, lid: u32) {
    let quads = params.head_dim >> 2u;
    let inside = lid < quads;
    let at = 4u * min(lid, quads - 1u);
    let v = vec4<f32>(merged[at], merged[at + 1u], merged[at + 2u], merged[at + 3u]);
    pack_q8_quad(t, params.heads * params.head_dim, (number % params.heads) * quads + lid, inside, v, lid);
}
