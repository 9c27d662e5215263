// The 128 slots of 32 weights that a workgroup stages for cooperative matrices, in any format: a
// quad of eight slots per thread. Neighbouring threads read neighbouring quads. Every quad is
// dequantized by itself.
// Needs: w_load4, w_row, slot_row, slot_column, PITCH, ws. Gives: Ahead, ahead_load, ahead_store.
struct Ahead { a: vec4<f16>, b: vec4<f16>, c: vec4<f16>, d: vec4<f16>, e: vec4<f16>, f: vec4<f16>, g: vec4<f16>, h: vec4<f16> }

fn ahead_quad(first: u32, slot: u32, k: u32, quad: u32) -> vec4<f16> {
    return vec4<f16>(w_load4(w_row(slot_row(first, slot), k), k, quad));
}

// Columns k0.. of the rows from `first` on.
fn ahead_load(first: u32, k: u32, k0: u32, lid: u32) -> Ahead {
    let s = lid >> 3u;
    let quad = (slot_column(k0, s) >> 2u) + (lid & 7u);
    return Ahead(
        ahead_quad(first, s, k, quad), ahead_quad(first, s + 16u, k, quad), ahead_quad(first, s + 32u, k, quad), ahead_quad(first, s + 48u, k, quad),
        ahead_quad(first, s + 64u, k, quad), ahead_quad(first, s + 80u, k, quad), ahead_quad(first, s + 96u, k, quad), ahead_quad(first, s + 112u, k, quad));
}

fn ahead_store(v: Ahead, k0: u32, lid: u32) {
    let at = (lid >> 3u) * PITCH + (lid & 7u);
    ws[at] = v.a;
    ws[at + 16u * PITCH] = v.b;
    ws[at + 32u * PITCH] = v.c;
    ws[at + 48u * PITCH] = v.d;
    ws[at + 64u * PITCH] = v.e;
    ws[at + 80u * PITCH] = v.f;
    ws[at + 96u * PITCH] = v.g;
    ws[at + 112u * PITCH] = v.h;
}
