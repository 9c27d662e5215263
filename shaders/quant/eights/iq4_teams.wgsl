// Products of IQ4_NL and IQ4_XS with staged activations (matmul/pieces/acts_staged.wgsl), a block
// of 32 columns with one scale at a time.
fn W_dot8(codes: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return dot(W_look(codes), low) + dot(W_look(codes >> 4u), high);
}

// Adds one thread's part of the products of four rows with columns `first` to `last`.
fn W_add(sums: vec4<f32>, at: vec4<u32>, k: u32, first: u32, last: u32, lane: u32) -> vec4<f32> {
    var added = sums;
    for (var j = lane; j < ((last - first) >> 5u); j += TEAM) {
        let n = (first >> 5u) + j;
        let a = W[(at.x >> 2u) + n];
        let b = W[(at.y >> 2u) + n];
        let c = W[(at.z >> 2u) + n];
        let d = W[(at.w >> 2u) + n];
        let scales = vec4<f32>(W_iq4_scale(at.x, k, n), W_iq4_scale(at.y, k, n), W_iq4_scale(at.z, k, n), W_iq4_scale(at.w, k, n));
        // The words of codes are multiplied one after the other, because the low and high halves of
        // a word have columns 16 apart.
        var low = staged_quad(8u * j);
        var high = staged_quad(8u * j + 4u);
        var products = vec4<f32>(W_dot8(a.x, low, high), W_dot8(b.x, low, high), W_dot8(c.x, low, high), W_dot8(d.x, low, high));
        low = staged_quad(8u * j + 1u);
        high = staged_quad(8u * j + 5u);
        products += vec4<f32>(W_dot8(a.y, low, high), W_dot8(b.y, low, high), W_dot8(c.y, low, high), W_dot8(d.y, low, high));
        low = staged_quad(8u * j + 2u);
        high = staged_quad(8u * j + 6u);
        products += vec4<f32>(W_dot8(a.z, low, high), W_dot8(b.z, low, high), W_dot8(c.z, low, high), W_dot8(d.z, low, high));
        low = staged_quad(8u * j + 3u);
        high = staged_quad(8u * j + 7u);
        products += vec4<f32>(W_dot8(a.w, low, high), W_dot8(b.w, low, high), W_dot8(c.w, low, high), W_dot8(d.w, low, high));
        added += scales * products;
    }
    return added;
}
