// The loads of attention_tile.wgsl, ahead of their use, and their way into workgroup memory.
// Needs: SLICE, QUERIES, QUADS, WG, KEYS, k_state_Stored, q, places, row_of_key, k_state_fetch8,
// params.kv_heads, HEAD, tile, k_state_read8, COLUMNS, v_state_Stored, v_state_fetch8,
// v_state_read8, values. Gives: Ahead, load_ahead, stage_ahead, load_values, stage_values.

// Units of eight columns in a slice of a key.
const KEY_UNITS = SLICE / 8u;
// Vectors of queries and units of keys that a thread loads for a slice.
const LOADS = (QUERIES * QUADS + WG - 1u) / WG;
const KEY_LOADS = (KEYS * KEY_UNITS + WG - 1u) / WG;
// Whether all threads load equally many.
const EVEN = QUERIES * QUADS % WG == 0u;
const KEYS_EVEN = KEYS * KEY_UNITS % WG == 0u;

// The part of a slice of queries and keys that one thread stages.
struct Ahead { queries: array<vec4<f32>, LOADS>, keys: array<k_state_Stored, KEY_LOADS> }

// Loads a thread's part of a slice. Keys have the numbers 0 to `past` of a tile. Number 0 has
// position `start`, and position 0 is row `base`.
fn load_ahead(base: u32, start: u32, past: u32, slice: u32, kv_head: u32, lid: u32) -> Ahead {
    var ahead: Ahead;
    for (var j = 0u; j < LOADS; j++) {
        let i = min(lid + j * WG, QUERIES * QUADS - 1u);
        ahead.queries[j] = q[places[i / QUADS] + slice / 4u + i % QUADS];
    }
    for (var j = 0u; j < KEY_LOADS; j++) {
        let i = min(lid + j * WG, KEYS * KEY_UNITS - 1u);
        let row = row_of_key(base, start, min(i / KEY_UNITS, past));
        ahead.keys[j] = k_state_fetch8(row, params.kv_heads * HEAD, (kv_head * HEAD + slice) / 8u + i % KEY_UNITS);
    }
    return ahead;
}

// Stages the part of one thread. Key 4 c + j is row c + j COLUMNS, so that the rows that
// neighbouring threads read together lie in different banks.
fn stage_ahead(ahead: Ahead, lid: u32) {
    for (var j = 0u; j < LOADS; j++) {
        let i = lid + j * WG;
        if (EVEN || i < QUERIES * QUADS) {
            tile[i / QUADS][i % QUADS] = ahead.queries[j];
        }
    }
    for (var j = 0u; j < KEY_LOADS; j++) {
        let i = lid + j * WG;
        if (KEYS_EVEN || i < KEYS * KEY_UNITS) {
            let eight = k_state_read8(ahead.keys[j]);
            let row = QUERIES + i / KEY_UNITS / 4u + i / KEY_UNITS % 4u * COLUMNS;
            tile[row][2u * (i % KEY_UNITS)] = eight[0];
            tile[row][2u * (i % KEY_UNITS) + 1u] = eight[1];
        }
    }
}

// Loads eight elements of a value. The threads together load DEEP values from number `deep` on.
fn load_values(base: u32, start: u32, past: u32, deep: u32, kv_head: u32, lid: u32) -> v_state_Stored {
    let row = row_of_key(base, start, min(deep + lid / (HEAD / 8u), past));
    return v_state_fetch8(row, params.kv_heads * HEAD, kv_head * (HEAD / 8u) + lid % (HEAD / 8u));
}

fn stage_values(ahead: v_state_Stored, lid: u32) {
    let eight = v_state_read8(ahead);
    let at = lid % (HEAD / 8u);
    values[lid / (HEAD / 8u)][2u * at] = eight[0];
    values[lid / (HEAD / 8u)][2u * at + 1u] = eight[1];
}
