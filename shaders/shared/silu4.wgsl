// The gated activation of SwiGLU, four at a time: x / (1 + exp(-x)).
// Needs: nothing. Gives: activation.
fn activation(g: vec4<f32>) -> vec4<f32> {
    let e = exp(-abs(g));
    return g * (select(e, vec4<f32>(1.0), g >= vec4<f32>(0.0)) / (1.0 + e));
}
