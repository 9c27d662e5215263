// IQ4_NL and IQ4_XS with their values in workgroup memory, where a thread looks up a code faster
// than it chooses among constants.
// The values (ggml's kvalues_iq4nl), as in shared/iq4.wgsl.
const W_IQ4 = array<f32, 16>(
    -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0);
var<workgroup> W_values: array<f32, 16>;

// Every thread calls it before its first load.
fn W_begin(lid: u32) {
    if (lid < 16u) { //~ twice: guard dropped, comparison, off by one
        W_values[lid] = W_IQ4[lid];
    }
    workgroupBarrier();
}

// The values of four codes, one in the low half of each byte.
fn W_look(codes: u32) -> vec4<f32> {
    return vec4<f32>(W_values[codes & 15u], W_values[(codes >> 8u) & 15u], W_values[(codes >> 16u) & 15u], W_values[(codes >> 24u) & 15u]);
}

// Elements 8 i.. of a row.
fn W_load8(row: u32, k: u32, i: u32) -> mat2x4<f32> {
    let at = row + ((i >> 2u) << 2u) + ((i & 1u) << 1u);
    let shift = (i & 2u) << 1u;
    let scale = W_iq4_scale(row, k, i >> 2u);
    return mat2x4<f32>(scale * W_look(W_word(at) >> shift), scale * W_look(W_word(at + 1u) >> shift));
}
