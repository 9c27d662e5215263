//! Lines that each pattern excuses, and lines of nearly the same form that it does not.

use super::{PATTERNS, of};
use crate::faults;

/// The faults of a line that a pattern excuses, as text behind the change. The line is the first
/// that ends with `<`, which is no part of it.
fn excused(text: &str) -> Vec<(&'static str, &'static str, String)> {
    let asked = text.lines().position(|line| line.ends_with('<')).unwrap_or(0);
    let text: String = text.lines().map(|line| format!("{}\n", line.trim_end_matches('<').trim_end())).collect();
    let lines: Vec<&str> = text.lines().collect();
    let faults = faults::of(&text).into_iter().filter(|fault| fault.line == asked);
    faults
        .filter_map(|fault| of(&lines, &fault).map(|of| (of.tag, fault.kind, fault.after.trim().to_string())))
        .collect()
}

/// Asserts that these are the tag and the kinds of all faults that a pattern excuses in a line.
#[track_caller]
fn holds(text: &str, tag: &str, kinds: &[&str]) {
    let found = excused(text);
    assert!(found.iter().all(|(of, ..)| *of == tag), "{found:?}");
    assert_eq!(found.iter().map(|(_, kind, _)| *kind).collect::<Vec<_>>(), kinds, "{found:?}");
}

#[track_caller]
fn holds_nowhere(texts: &[&str]) {
    for text in texts {
        assert_eq!(excused(text), [], "{text}");
    }
}

const GUARD: [&str; 2] = ["comparison", "guard dropped"];

#[test]
fn one_thread_of_those_with_the_same_value() {
    for thread in ["lid", "lane", "lane % QUARTER", "lid % LANES"] {
        holds(&format!("if ({thread} == 0u) {{"), "twice", &["off by one", "guard dropped"]);
    }
    holds("if ((lid & (width - 1u)) == 0u) {", "twice", &["off by one", "off by one", "guard dropped"]);
    holds_nowhere(&[
        "if (lid == 1u) {",
        "if (lid != 0u) {",
        "if (row == 0u) {",
        "if (lid % params.columns == 0u) {",
        "if (slice == 0u && lid == 0u) {",
        "let first = lid == 0u;",
        "} else if (lid == 0u) {",
    ]);
}

#[test]
fn variables_that_only_a_larger_constant_needs() {
    holds("if (HEADS > 1u) {\n  sums.y = dot8(q.b, key);\n  let a = b;\n  acc += a;\n}\n", "surplus", &GUARD);
    holds_nowhere(&[
        "if (heads > 1u) {\n  sums.y = dot8(q.b, key);\n}\n",
        "if (HEADS > most) {\n  sums.y = dot8(q.b, key);\n}\n",
        "if (HEADS >= 1u) {\n  sums.y = dot8(q.b, key);\n}\n",
        "if (HEADS > 1u && own) {\n  sums.y = dot8(q.b, key);\n}\n",
        "if (HEADS > 1u) {\n  y[1] = dot8(q.b, key);\n}\n",
        "if (HEADS > 1u) {\n  finish(q.b, key);\n}\n",
        "if (HEADS > 1u) {\n  a = b;\n  finish(q.b, key);\n}\n",
        "if (HEADS > 1u) {\n  a = b;\n} else {\n  a = c;\n}\n",
        "if (HEADS > 1u) {\n  return;\n}\n",
        "if (HEADS > 1u) {\n}\n",
    ]);
}

#[test]
fn rows_clamped_to_the_last() {
    for line in [
        "let at = min(quad, quads - 1u);",
        "return w_row(min(first, params.rows - 1u), params.k);",
        "x[min(number, params.rows * quads - 1u)] = y;",
        "let t = min(t0, params.slab - 16u) * QUADS;",
        "let i = min(k0, params.k - DEPTH);",
    ] {
        holds(line, "dropped", &["sign"]);
    }
    // The sign of the first argument is another matter.
    let found = excused("let b = w_row(min(r + 1u, rows - 1u), k);");
    assert_eq!(found, [("dropped", "sign", "let b = w_row(min(r + 1u, rows + 1u), k);".to_string())]);
    holds_nowhere(&[
        "let at = max(quad, quads - 1u);",
        "let at = min(quads - 1u, quad);",
        "let count = min(tokens, params.rows - t0);",
        "let at = min(quad, quads + extra - 1u);",
        "let at = min(v, vec4<u32>(params.vocab - 1u));",
        "let at = min(v, quads - 1u + more);",
        "let at = (quads - 1u);",
    ]);
}

#[test]
fn the_number_of_the_last_row() {
    holds("let last = params.rows - 1u;", "dropped", &["sign"]);
    holds("let final_row = rows - 1u;", "dropped", &["sign"]);
    holds_nowhere(&[
        "let before = params.rows - 1u;",
        "let last = params.rows - 2u;",
        "let last = row * k + k - 1u;",
        "var last = params.rows - 1u;",
        "let last = held - 1u - t;",
    ]);
}

#[test]
fn tiles_past_the_last() {
    for header in [
        "for (var tile = start; tile < end; tile += WG) {",
        "for (var k0 = 0u; k0 < params.k; k0 += DEPTH) {",
        "for (var tile = part.x; tile < part.y; tile += 2u * groups) {",
    ] {
        let found = excused(header);
        assert!(found.iter().all(|(tag, kind, _)| (*tag, *kind) == ("empty", "comparison")), "{found:?}");
        assert_eq!(found.len(), 1, "{header}");
    }
    holds_nowhere(&[
        "for (var d = lid; d < params.dim; d += WG) {",
        "for (var j = lane; j < steps; j += LANES) {",
        "for (var j = group; j < count; j += 4u * GROUPS) {",
        "for (var t = 0u; t < held; t += STEPS) {",
        "for (var s = 0u; s < params.splits; s += 4u) {",
        "for (var s = 0u; s < params.splits; s++) {",
        "for (var slice = 0u; slice < HEAD; slice += SLICE) {",
        "for (var i = 0u; i < min(KEYS, rest); i += TILE) {",
        "for (var tile = start; other < end; tile += WG) {",
    ]);
}

#[test]
fn the_part_of_a_row_that_only_long_rows_have() {
    holds("if (quads > WG) {", "empty", &GUARD);
    let found = excused("if (quads > 2u * WG) {");
    assert_eq!(found.iter().map(|(_, kind, _)| *kind).collect::<Vec<_>>(), GUARD);
    holds_nowhere(&["if (quads >= WG) {", "if (quads > TILE) {", "if (ROOM > WG) {", "if (quads > WG && own) {"]);
}

#[test]
fn the_next_distance_of_an_exchange() {
    let most = |distance: &str| format!("most = max(most, lanes_other(most, {distance}, lid));");
    holds(&format!("{}\n{}<", most("1u"), most("2u")), "alike", &["off by one"]);
    holds(&format!("{}\n{}\n{}<", most("1u"), most("2u"), most("4u")), "alike", &["off by one"]);
    holds("s += subgroupShuffleXor(s, 1u);\ns += subgroupShuffleXor(s, 2u);<", "alike", &["off by one"]);
    holds_nowhere(&[
        &most("1u"),
        &most("2u"),
        &format!("{}\n{}<", most("2u"), most("4u")),
        &format!("{}\n{}<", most("1u"), most("4u")),
        &format!("{}\nlet a = b;\n{}<", most("1u"), most("2u")),
        "sum += lanes_other(sum, 1u, lid);\nmost = max(most, lanes_other(most, 2u, lid));<",
    ]);
}

#[test]
fn the_largest_element_of_states_without_scales() {
    holds("if (k_state_scaled) {", "unused", &["guard dropped"]);
    holds_nowhere(&["if (scaled) {", "if (raise && k_state_scaled) {", "if (!k_state_scaled) {"]);
}

#[test]
fn halves_of_a_sigmoid_at_zero() {
    holds("y[i] = x * (select(e, 1.0, x >= 0.0) / (1.0 + e));", "meet", &["comparison"]);
    holds("return g * (select(e, one, g >= vec4<f32>(0.0)) / (1.0 + e));", "meet", &["comparison"]);
    holds_nowhere(&[
        "y[i] = select(e, 1.0, x >= 0.5) / (1.0 + e);",
        "y[i] = select(e, 1.0, x >= 0.0) / (2.0 + e);",
        "y[i] = select(e, 1.0, x >= 0.0);",
    ]);
}

#[test]
fn weights_of_keys_past_the_end() {
    holds("let p = select(0.0, exp(s - most), tile + lid < end);", "weightless", &["comparison"]);
    holds("let p = select(vec4<f32>(0.0), exp(s - most), near < part.y);", "weightless", &["comparison"]);
    holds_nowhere(&[
        "let p = select(1.0, exp(s - most), key < end);",
        "let p = select(0.0, exp(s), key < end);",
        "let p = select(0.0, s - most, key < end);",
        "let p = select(0.0, exp(s - most), key >= end);",
    ]);
}

#[test]
fn corners_of_matrices_are_whole_quads() {
    holds("finish(y0 + 16u, x0 + 48u, base, lane);", "rounded", &["off by one", "off by one"]);
    holds("let b1 = b_tile(n0 + 16u, depth);", "rounded", &["off by one"]);
    holds("o1 = add(o1, p, column + 4u);", "rounded", &["off by one"]);
    holds_nowhere(&[
        "finish(y0 + 8u, x0, base, lane);",
        "finish(t + 16u, r0, lane);",
        "finish_band(sums.t1, t0 + 16u, r0);",
        "let a1 = a_tile(m0 + 16u, depth);",
        "o1 = add(o1, p, column + 2u);",
        "o1 = add(column + 4u, p);",
    ]);
}

#[test]
fn the_rows_of_the_next_workgroup() {
    holds("if (lid < WEIGHT_ROWS && r + lid < params.n) {", "race", &["comparison", "comparison"]);
    holds("let inside = lid < WEIGHT_ROWS && r + lid < params.n;", "race", &["comparison", "comparison"]);
    holds_nowhere(&[
        "if (lid < rows && r + lid < params.n) {",
        "if (lid < WEIGHT_ROWS && r < params.n) {",
        "if (lid < WEIGHT_ROWS) {",
        "if (lid < WEIGHT_ROWS || r + lid < params.n) {",
    ]);
}

#[test]
fn a_branch_in_the_form_of_a_loop() {
    let found = excused("for (var first = tile; first == 0u; first = 1u) {");
    assert!(!found.is_empty() && found.iter().all(|(tag, kind, _)| (*tag, *kind) == ("free", "off by one")));
    holds_nowhere(&[
        "for (var first = tile; first == 0u; first = 2u) {",
        "for (var first = 1u; first == 0u; first = 1u) {",
        "for (var first = tile; other == 0u; first = 1u) {",
    ]);
}

#[test]
fn early_returns_of_workgroups_past_the_end() {
    let returns = |condition: &str| format!("if ({condition}) {{\n  return;\n}}\n");
    holds(&returns("number * WEIGHT_ROWS >= params.n"), "exit", &GUARD);
    holds(&returns("n >= params.q_heads"), "whole", &GUARD);
    holds(&returns("number >= params.rows * params.kv_heads"), "whole", &GUARD);
    holds(&returns("number >= sets * params.splits"), "whole", &GUARD);
    let value = "let r = ROWS * workgroup_number(id, extents);\n";
    holds(&format!("{value}if (r >= params.n) {{<\n  return;\n}}\n"), "exit", &GUARD);
    let found = excused(&returns("number >= before_c + (params.rows_c + ROWS - 1u) / ROWS"));
    assert!(found.len() == 7 && found.iter().all(|(tag, ..)| *tag == "exit"), "{found:?}");
    holds_nowhere(&[
        "if (number * WEIGHT_ROWS >= params.n) {\n  y[0] = 0.0;\n}\n",
        "if (n >= params.q_heads) {\n  return 0.0;\n}\n",
        "let r = workgroup_number(id, extents);\nif (r >= params.n) {<\n  return;\n}\n",
        "let r = workgroup_number(id, extents) * WG + lid;\nif (r >= params.n) {<\n  return;\n}\n",
        &returns("row >= params.rows"),
        &returns("at >= params.rows * params.heads * quads"),
        &returns("n > params.q_heads"),
        &returns("number >= before_b + (params.rows_c + ROWS - 1u) / ROWS"),
        &returns("tile >= before_c + (params.rows_c + ROWS - 1u) / ROWS"),
    ]);
}

#[test]
fn every_pattern_holds_in_several_lines_and_no_two_for_one_fault() {
    let mut lines = vec![0; PATTERNS.len()];
    for path in crate::files::all().unwrap() {
        let text = crate::workspace::read(&path).unwrap();
        let split: Vec<&str> = text.lines().collect();
        for fault in faults::of(&text) {
            let holding: Vec<_> = super::all(&split, &fault).collect();
            assert!(holding.len() < 2, "{path}:{}: {}", fault.line + 1, fault.kind);
            holding.iter().for_each(|n| lines[*n] += 1);
        }
    }
    assert!(lines.iter().all(|count| *count >= 4), "{lines:?}");
}
