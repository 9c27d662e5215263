// norm_add.wgsl without a packed result.
// Needs: nothing. Gives: norm_add_weight, norm_add_then.
fn norm_add_weight(at: u32) -> vec4<f32> {
    return vec4<f32>(1.0);
}

fn norm_add_then(row: u32, quad: u32, inside: bool, y: vec4<f32>, weight: vec4<f32>, lid: u32) {
}
