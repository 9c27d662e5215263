// The gated activation of GEGLU, four at a time; gelu.wgsl has the formula.
// Needs: gelu_of. Gives: activation.
fn activation(g: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(gelu_of(g.x), gelu_of(g.y), gelu_of(g.z), gelu_of(g.w));
}
