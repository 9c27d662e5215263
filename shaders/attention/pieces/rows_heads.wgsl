// The heads that a workgroup of attention_decode_rows_f16.wgsl finishes first: HEADS queries, and
// the key and the value of the row.
// Needs: gathered, params.heads, head_turns, HEADS, SUBS, q, params.q_heads, params.normed, wq, k,
// wk, v, lanes_add, params.eps, lanes_other4, k_state_scaled, lanes_other, params.scale,
// k_state_store4, k_state_rounded, v_state_store4, v_state_rounded. Gives: TWO_POW_MINUS_32,
// TWO_POW_MINUS_64, gathered_eight, finish_heads.
const TWO_POW_MINUS_32 = 2.3283064365386963e-10;
const TWO_POW_MINUS_64 = 5.421010862427522e-20;

fn gathered_eight(head: u32, lane: u32) -> mat2x4<f32> {
    return mat2x4<f32>(gathered[32u * head + 2u * lane], gathered[32u * head + 2u * lane + 1u]);
}

// Every 32 threads finish a head, a quad each, and leave it in `gathered`: queries times the scale,
// then the key and the value as the states store them.
fn finish_heads(t: u32, first_head: u32, kv_head: u32, slot: u32, stores: bool, lid: u32) {
    let lane = lid & 31u;
    let quad = 32u * kv_head + lane;
    let width = 128u * params.heads;
    let turns = head_turns(t, lane, 128u);
    for (var first = 0u; first < HEADS + 2u; first += SUBS) { //~ empty: comparison
        let h = first + lid / 32u;
        var x = vec4<f32>(0.0);
        var weight = vec4<f32>(1.0);
        if (h < HEADS) {
            x = q[32u * (t * params.q_heads + first_head + h) + lane];
            if (params.normed == 1u) { //~ unused: guard dropped
                weight = wq[lane];
            }
        } else if (h == HEADS) {
            x = k[32u * t * params.heads + quad];
            if (params.normed == 1u) { //~ unused: guard dropped
                weight = wk[lane];
            }
        } else if (h == HEADS + 1u) { //~ dropped: guard dropped
            x = v[32u * t * params.heads + quad];
        }
        if (params.normed == 1u) {
            let small = x * TWO_POW_MINUS_32;
            let squares = lanes_add(dot(small, small), 32u, lid); //~ rounded: off by one
            let factor = TWO_POW_MINUS_32 * inverseSqrt(squares / 128.0 + params.eps * TWO_POW_MINUS_64);
            x = select(x, x * weight * factor, h <= HEADS);
        }
        let other = lanes_other4(x, 16u, lid) * select(-1.0, 1.0, (lane & 16u) != 0u);
        x = select(x, x * turns[0] + other * turns[1], h <= HEADS);
        var most = 0.0;
        if (k_state_scaled) {
            most = max(max(abs(x.x), abs(x.y)), max(abs(x.z), abs(x.w)));
            most = max(most, lanes_other(most, 1u, lid));
            most = max(most, lanes_other(most, 2u, lid));
            most = max(most, lanes_other(most, 4u, lid));
        }
        if (h < HEADS) {
            x *= params.scale;
        } else if (h == HEADS) {
            if (stores) { //~ twice: guard dropped
                k_state_store4(slot, width, quad, x, most);
            }
            x = k_state_rounded(x, most);
        } else if (h == HEADS + 1u) {
            if (stores) { //~ twice: guard dropped
                v_state_store4(slot, width, quad, x, most);
            }
            x = v_state_rounded(x, most);
        }
        if (h < HEADS + 2u) { //~ surplus: comparison, off by one, guard dropped
            gathered[32u * h + lane] = x;
        }
    }
    workgroupBarrier();
}
