// Four consecutive activations of a row of any length. Elements past its end are zero.
// Needs: nothing. Gives: x, x_load4.
@group(0) @binding(1) var<storage, read> x: array<f32>;

fn x_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    let d = 4u * i;
    let at = row * k + d;
    let last = row * k + k - 1u; //~ dropped: sign
    let v = vec4<f32>(x[min(at, last)], x[min(at + 1u, last)], x[min(at + 2u, last)], x[min(at + 3u, last)]);
    return select(vec4<f32>(0.0), v, vec4<u32>(d, d + 1u, d + 2u, d + 3u) < vec4<u32>(k));
}
