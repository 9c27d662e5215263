// Four consecutive activations of a row whose length is a multiple of 4.
// Needs: nothing. Gives: x, x_load4.
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;

fn x_load4(row: u32, k: u32, i: u32) -> vec4<f32> {
    return x[row * (k >> 2u) + i];
}
