// norm_add.wgsl makes nothing more.
fn norm_add_then(row: u32, quad: u32, at: u32, inside: bool, y: vec4<f32>, lid: u32) {
}
