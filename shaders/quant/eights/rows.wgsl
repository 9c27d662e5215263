// One thread's part of the products of four rows with row t of the activations, eight columns at a
// time, and of the activations' share.
fn W_part(at: vec4<u32>, k: u32, t: u32, lid: u32) -> Part {
    var part = Part();
    for (var i = lid; i < ((k + 7u) >> 3u); i += WG) {
        let a = W_load8(at.x, k, i);
        let b = W_load8(at.y, k, i);
        let c = W_load8(at.z, k, i);
        let d = W_load8(at.w, k, i);
        let acts = acts8(t, i);
        part.sums += vec4<f32>(dot8(a, acts.v), dot8(b, acts.v), dot8(c, acts.v), dot8(d, acts.v));
        part.share += acts.share;
    }
    return part;
}
