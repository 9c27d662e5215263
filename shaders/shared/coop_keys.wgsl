// Keys and values on their way from the states to the tile `kv` of attention_coop.wgsl, 32 at a time.
// A thread's part of 32 keys or values: one quad of every fourth.
struct Ahead { a: vec4<f16>, b: vec4<f16>, c: vec4<f16>, d: vec4<f16>, e: vec4<f16>, f: vec4<f16>, g: vec4<f16>, h: vec4<f16> }

// The state's row of key key0 + i, or of the last one.
fn key_row(base: u32, key0: u32, i: u32, last: u32) -> u32 {
    return base + min(key0 + i, last) % params.capacity;
}

fn load_k(base: u32, key0: u32, last: u32, at: u32, width: u32, lid: u32) -> Ahead {
    let quad = at + (lid & 31u);
    return Ahead(
        vec4<f16>(k_state_load4(key_row(base, key0, 0u + (lid >> 5u), last), width, quad)),
        vec4<f16>(k_state_load4(key_row(base, key0, 4u + (lid >> 5u), last), width, quad)),
        vec4<f16>(k_state_load4(key_row(base, key0, 8u + (lid >> 5u), last), width, quad)),
        vec4<f16>(k_state_load4(key_row(base, key0, 12u + (lid >> 5u), last), width, quad)),
        vec4<f16>(k_state_load4(key_row(base, key0, 16u + (lid >> 5u), last), width, quad)),
        vec4<f16>(k_state_load4(key_row(base, key0, 20u + (lid >> 5u), last), width, quad)),
        vec4<f16>(k_state_load4(key_row(base, key0, 24u + (lid >> 5u), last), width, quad)),
        vec4<f16>(k_state_load4(key_row(base, key0, 28u + (lid >> 5u), last), width, quad)));
}

fn load_v(base: u32, key0: u32, last: u32, at: u32, width: u32, lid: u32) -> Ahead {
    let quad = at + (lid & 31u);
    return Ahead(
        vec4<f16>(v_state_load4(key_row(base, key0, 0u + (lid >> 5u), last), width, quad)),
        vec4<f16>(v_state_load4(key_row(base, key0, 4u + (lid >> 5u), last), width, quad)),
        vec4<f16>(v_state_load4(key_row(base, key0, 8u + (lid >> 5u), last), width, quad)),
        vec4<f16>(v_state_load4(key_row(base, key0, 12u + (lid >> 5u), last), width, quad)),
        vec4<f16>(v_state_load4(key_row(base, key0, 16u + (lid >> 5u), last), width, quad)),
        vec4<f16>(v_state_load4(key_row(base, key0, 20u + (lid >> 5u), last), width, quad)),
        vec4<f16>(v_state_load4(key_row(base, key0, 24u + (lid >> 5u), last), width, quad)),
        vec4<f16>(v_state_load4(key_row(base, key0, 28u + (lid >> 5u), last), width, quad)));
}

fn stage(tile: Ahead, lid: u32) {
    let at = (lid >> 5u) * WIDE + (lid & 31u);
    kv[at + 0u * WIDE] = tile.a;
    kv[at + 4u * WIDE] = tile.b;
    kv[at + 8u * WIDE] = tile.c;
    kv[at + 12u * WIDE] = tile.d;
    kv[at + 16u * WIDE] = tile.e;
    kv[at + 20u * WIDE] = tile.f;
    kv[at + 24u * WIDE] = tile.g;
    kv[at + 28u * WIDE] = tile.h;
}
