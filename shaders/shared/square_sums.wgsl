// Sums of squares that neither overflow nor vanish: x of the values, y of the values times 2^-64. y
// is used where it is large enough.
// Needs: nothing. Gives: squares4, inverse_root.
const SMALLER = 5.421010862427522e-20;
// y is used above this value.
const LARGE_ENOUGH = 1e-12;

fn squares(sums: vec2<f32>, v: f32) -> vec2<f32> {
    let small = v * SMALLER;
    return sums + vec2<f32>(v * v, small * small);
}

fn squares4(sums: vec2<f32>, v: vec4<f32>) -> vec2<f32> {
    let small = v * SMALLER;
    return sums + vec2<f32>(dot(v, v), dot(small, small));
}

// Two factors. A value times the first and then times the second is the value divided by sqrt(mean
// of squares + eps).
fn inverse_root(sums: vec2<f32>, count: f32, eps: f32) -> vec2<f32> {
    if (sums.y > LARGE_ENOUGH) { //~ meet: comparison
        return vec2<f32>(SMALLER, inverseSqrt(sums.y / count + eps * SMALLER * SMALLER)); //~ small: sign
    }
    return vec2<f32>(1.0, inverseSqrt(sums.x / count + eps));
}
