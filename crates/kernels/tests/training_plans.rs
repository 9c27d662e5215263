//! Plans of training that round: which products read f16, and from which copy.

use kernels::cpu_ref::Mask;
use kernels::ops::backward::{
    Attended, attention_backward_kv, attention_backward_q, attention_delta, attention_lse, matmul_input,
    matmul_input_exact, matmul_weight, matmul_weight_exact,
};
use kernels::ops::{Attend, matmul, matmul_exact};
use kernels::plan::plan;
use kernels::{Caps, Class, Counts, Input, Lead, PlanOptions, Precision, Recorder, Shape, StateKind, Table};

/// A card with cooperative matrices, or without.
fn card(cooperative: bool) -> Caps {
    Caps {
        cooperative,
        max_workgroup: 1024,
        max_workgroup_bytes: 48 << 10,
        table: Table::usual(Class::Discrete, cooperative),
        ..Caps::WEBGPU
    }
}

fn kernels_of(rec: &Recorder, options: &PlanOptions, caps: &Caps) -> Vec<&'static str> {
    plan(rec, caps, options).expect("a plan").dispatches.iter().map(|placed| placed.dispatch.variant.name).collect()
}

/// Two products of the same rows, the product of a router, and the derivatives.
fn recorded(rows: u32) -> Recorder {
    let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[StateKind::Words(32 * 64); 2]);
    let (w, gradient) = (rec.weight(rec.state(0), 32, 64), rec.state(1));
    let [x, dy] = [(0, 64), (1, 32)].map(|(n, width)| rec.host_input(n, Shape::new(Lead::Step, rows, width)));
    let results =
        [matmul(&mut rec, w, x), matmul(&mut rec, w, x), matmul_exact(&mut rec, w, x), matmul_input(&mut rec, w, dy)];
    for y in results {
        rec.output(y);
    }
    matmul_weight(&mut rec, dy, x, gradient);
    rec
}

/// A router's scores decide which experts a row has, so they are never rounded, nor is what flows
/// back through them.
#[test]
fn derivatives_of_an_exact_product_are_exact() {
    let mut rec = Recorder::new(Counts { step: 128, out: 0 }, &[StateKind::Words(32 * 64); 2]);
    let (w, gradient) = (rec.weight(rec.state(0), 32, 64), rec.state(1));
    let [x, dy] = [(0, 64), (1, 32)].map(|(n, width)| rec.host_input(n, Shape::new(Lead::Step, 128, width)));
    let dx = matmul_input_exact(&mut rec, w, dy);
    rec.output(dx);
    matmul_weight_exact(&mut rec, dy, x, gradient);
    let fast = PlanOptions::training().precision(Precision::Fast);
    assert_eq!(kernels_of(&rec, &fast, &card(true)), ["matmul_input", "matmul_weight"]);
}

#[test]
fn products_of_sixteen_rows_and_their_derivatives_read_f16() {
    let fast = PlanOptions::training().precision(Precision::Fast);
    let rounded = [
        "pack_f16",
        "matmul_tile128",
        "matmul_tile128",
        "matmul",
        "pack_f16",
        "matmul_input_tile128",
        "matmul_weight_tile128",
    ];
    for rows in [16, 64, 1024] {
        assert_eq!(kernels_of(&recorded(rows), &fast, &card(true)), rounded, "{rows} rows");
    }
}

#[test]
fn nothing_is_rounded_to_8_bits_and_nothing_in_f32() {
    let exact = ["matmul", "matmul", "matmul", "matmul_input", "matmul_weight"];
    let (f32, fast) = (PlanOptions::training(), PlanOptions::training().precision(Precision::Fast));
    for (rows, options, cooperative) in [(8, &fast, true), (8, &fast, false), (32, &fast, false), (64, &f32, true)] {
        assert_eq!(
            kernels_of(&recorded(rows), options, &card(cooperative)),
            exact,
            "{rows} rows, cooperative: {cooperative}"
        );
    }
}

/// The derivatives of an attention with heads of this length.
fn attended(rows: u32, head: u32, heads: u32) -> Recorder {
    let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[]);
    let [q, k, v, dy] = [(0, heads), (1, 1), (2, 1), (3, heads)]
        .map(|(n, heads)| rec.host_input(n, Shape::new(Lead::Step, rows, heads * head)).heads(heads));
    let [spans, step_rows] = [Input::Spans, Input::Rows].map(|input| rec.input(input));
    let attend = Attend { mask: Mask::Causal, scale: 1.0, softcap: None };
    let of = Attended { q, k, v, kv_heads: 1, attend, spans, step_rows };
    let lse = attention_lse(&mut rec, of);
    let stats = attention_delta(&mut rec, q, dy, lse);
    let dq = attention_backward_q(&mut rec, of, dy, stats);
    let [dk, dv] = attention_backward_kv(&mut rec, of, dy, stats);
    [dq, dk, dv].into_iter().for_each(|t| {
        rec.output(t);
    });
    rec
}

/// Both derivatives read one copy of v and one of dy. A tile holds 32 heads of a row. There are
/// kernels for four lengths of a head.
#[test]
fn attention_of_sixteen_rows_goes_through_tiles() {
    let fast = PlanOptions::training().precision(Precision::Fast);
    let plain = ["attention_lse", "attention_delta", "attention_backward_q", "attention_backward_kv"];
    let card = |cooperative| Caps { max_storage_buffers: 16, ..card(cooperative) };
    for head in [64, 128, 256, 512] {
        let tiles = ["attention_lse_flash", "attention_backward_q_flash", "attention_backward_kv_flash"]
            .map(|name| format!("{name}_{head}"));
        let tiles = [&*tiles[0], "attention_delta", "pack_f16", "pack_f16", &*tiles[1], &*tiles[2]];
        for (rows, heads) in [(16, 32), (130, 1)] {
            assert_eq!(kernels_of(&attended(rows, head, heads), &fast, &card(true)), tiles);
        }
        assert_eq!(kernels_of(&attended(15, head, 1), &fast, &card(true)), plain, "too few rows");
        assert_eq!(kernels_of(&attended(16, head, 33), &fast, &card(true)), plain, "a row does not fit");
        assert_eq!(kernels_of(&attended(16, head, 1), &fast, &card(false)), plain, "no cooperative matrices");
    }
    for (rec, options) in [(attended(64, 80, 1), &fast), (attended(64, 64, 1), &PlanOptions::training())] {
        assert_eq!(kernels_of(&rec, options, &card(true)), plain);
    }
}

/// Parts of a value are views with its number.
#[test]
fn each_part_of_a_value_has_its_own_copy() {
    let mut rec = Recorder::new(Counts { step: 128, out: 128 }, &[StateKind::Words(32 * 64)]);
    let w = rec.weight(rec.state(0), 32, 64);
    let x = rec.host_input(0, Shape::new(Lead::Out, 128, 64));
    for first in [0, 64] {
        let y = matmul(&mut rec, w, x.rows_from(first, 64));
        rec.output(y);
    }
    let fast = PlanOptions::training().precision(Precision::Fast);
    assert_eq!(kernels_of(&rec, &fast, &card(true)), ["pack_f16", "matmul_tile128", "pack_f16", "matmul_tile128"]);
}
