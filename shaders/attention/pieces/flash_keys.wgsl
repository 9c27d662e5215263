// Loads keys and values from the states into the tile `kv` of attention_flash.wgsl, KEYS at a time.
// Units are eight elements. A thread loads LOADS units, one of every STEP-th key. They stay in
// stored form in registers, so no thread waits for a load before the data is needed.
// Needs: HEAD, WG, KEYS, k_state_Stored, v_state_Stored, params.capacity, params.kv_heads,
// k_state_fetch8, v_state_fetch8, k_state_open8, v_state_open8, kv, WIDE. Gives: UNITS, Keys,
// Values, load_k, load_v, stage_k, stage_v.
const UNITS = HEAD / 8u;
const STEP = WG / UNITS;
const LOADS = KEYS / STEP;
const_assert LOADS * STEP == KEYS && (LOADS == 2u || LOADS == 4u);
struct Keys { a: k_state_Stored, b: k_state_Stored, c: k_state_Stored, d: k_state_Stored }
struct Values { a: v_state_Stored, b: v_state_Stored, c: v_state_Stored, d: v_state_Stored }

// The state's row of the i-th key after the key in row `slot`, or of key `most` if that is less.
fn key_row(base: u32, slot: u32, i: u32, most: u32) -> u32 {
    let at = slot + min(i, most);
    return base + select(at, at - params.capacity, at >= params.capacity);
}

fn load_k(base: u32, slot: u32, most: u32, kv_head: u32, lid: u32) -> Keys {
    let width = params.kv_heads * HEAD;
    let unit = kv_head * UNITS + lid % UNITS;
    let i = lid / UNITS;
    var keys: Keys;
    keys.a = k_state_fetch8(key_row(base, slot, i, most), width, unit);
    keys.b = k_state_fetch8(key_row(base, slot, i + STEP, most), width, unit);
    if (LOADS > 2u) {
        keys.c = k_state_fetch8(key_row(base, slot, i + 2u * STEP, most), width, unit);
        keys.d = k_state_fetch8(key_row(base, slot, i + 3u * STEP, most), width, unit);
    }
    return keys;
}

fn load_v(base: u32, slot: u32, most: u32, kv_head: u32, lid: u32) -> Values {
    let width = params.kv_heads * HEAD;
    let unit = kv_head * UNITS + lid % UNITS;
    let i = lid / UNITS;
    var values: Values;
    values.a = v_state_fetch8(key_row(base, slot, i, most), width, unit);
    values.b = v_state_fetch8(key_row(base, slot, i + STEP, most), width, unit);
    if (LOADS > 2u) {
        values.c = v_state_fetch8(key_row(base, slot, i + 2u * STEP, most), width, unit);
        values.d = v_state_fetch8(key_row(base, slot, i + 3u * STEP, most), width, unit);
    }
    return values;
}

fn stage_k(keys: Keys, lid: u32) {
    stage(k_state_open8(keys.a), 0u, lid);
    stage(k_state_open8(keys.b), 1u, lid);
    if (LOADS > 2u) { //~ surplus: comparison, guard dropped
        stage(k_state_open8(keys.c), 2u, lid);
        stage(k_state_open8(keys.d), 3u, lid);
    }
}

fn stage_v(values: Values, lid: u32) {
    stage(v_state_open8(values.a), 0u, lid);
    stage(v_state_open8(values.b), 1u, lid);
    if (LOADS > 2u) { //~ surplus: comparison, guard dropped
        stage(v_state_open8(values.c), 2u, lid);
        stage(v_state_open8(values.d), 3u, lid);
    }
}

fn stage(eight: mat2x4<f32>, turn: u32, lid: u32) {
    kv[(lid / UNITS + turn * STEP) * (WIDE / 2u) + lid % UNITS] = mat2x4<f16>(vec4<f16>(eight[0]), vec4<f16>(eight[1]));
}
