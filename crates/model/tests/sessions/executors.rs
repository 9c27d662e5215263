//! Logits are the same for all chunk sizes, cache types and executors, with and without taps.

use crate::common::{Tiny, VOCABULARY, both, exact, gpu, ids, logits, webgpu, worst};
use kernels::testing::Switches;
use kernels::{Caps, Executor, PlanOptions};
use model::{KvType, SessionOptions};

/// The largest difference between two orders of the same sums.
const CHUNKING: f32 = 1e-5;
/// The largest difference between f32 on a GPU and the f64 sums of the oracles.
const EXECUTORS: f32 = 1e-5;

fn all_of(tiny: &Tiny, executor: &Executor, options: SessionOptions, tokens: &[u32]) -> Vec<f32> {
    let mut session = tiny.on(executor).session(options).unwrap();
    session.feed(tokens).unwrap();
    logits(&mut session).0
}

/// Checks that logits have ordinary size, are within `wider` times the bound of the oracle's on
/// every executor, and are the same for all these chunk sizes.
fn same_in_chunks(tiny: &Tiny, chunks: &[u32], wider: f32) {
    let tokens = ids(23, 7);
    let reference = all_of(tiny, &Executor::Cpu, exact(1), &tokens);
    let largest = reference.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
    assert!((2.0..10.0).contains(&largest), "{}: logits of an ordinary size: {largest}", tiny.architecture);
    for (name, executor) in [("cpu", Executor::Cpu), ("gpu", gpu()), ("webgpu", webgpu())] {
        let decoded = all_of(tiny, &executor, exact(1), &tokens);
        let apart = worst(&reference, &decoded);
        assert!(
            apart <= wider * EXECUTORS,
            "{} {:?} on {name}: {apart:e} from the oracle",
            tiny.architecture,
            tiny.types
        );
        for &chunk in chunks {
            let apart = worst(&decoded, &all_of(tiny, &executor, exact(chunk), &tokens));
            assert!(
                apart <= wider * CHUNKING,
                "{} {:?} on {name}, chunks of {chunk}: {apart:e}",
                tiny.architecture,
                tiny.types
            );
        }
    }
}

#[test]
fn prefill_in_any_chunking_equals_token_by_token_decode() {
    for tiny in [Tiny::qwen3(), Tiny::qwen2()] {
        same_in_chunks(&tiny, &[2, 7, 22, 64], 1.0);
    }
    for tiny in [Tiny { tied: false, ..Tiny::qwen2() }, Tiny { tied: true, ..Tiny::qwen3() }] {
        same_in_chunks(&Tiny { layers: 1, ..tiny.mixed() }, &[7, 64], 1.0);
    }
}

#[test]
fn prefill_in_any_chunking_takes_a_token_to_the_same_experts() {
    for tiny in [Tiny::qwen3moe(), Tiny::qwen2moe()] {
        same_in_chunks(&tiny, &[2, 7, 22, 64], 1.0);
    }
}

/// A prompt takes the plan with room for its rows, and its last chunk another one.
#[test]
fn plans_for_any_number_of_rows_give_the_same() {
    for tiny in [Tiny::qwen3(), Tiny::qwen3moe(), Tiny::gemma4()] {
        let wider = if tiny.architecture == "gemma4" { 5.0 } else { 1.0 };
        let tokens = ids(41, 9);
        let reference = all_of(&tiny, &Executor::Cpu, exact(1), &tokens);
        let model = tiny.on(&gpu());
        let mut session = model.session(exact(32).least_rows(2)).unwrap();
        // Also back from a plan of many rows to plans of few.
        for rows in [3, 1, 41, 2, 16, 17, 33, 5] {
            session.reset();
            session.feed(&tokens[..rows]).unwrap();
            let apart = worst(&reference[..rows * VOCABULARY as usize], &logits(&mut session).0);
            assert!(apart <= wider * EXECUTORS, "{} {rows} rows: {apart:e}", tiny.architecture);
            let capacity = session.plan().unwrap().capacity().step as usize;
            let last = (rows - 1) % 32 + 1;
            assert!(
                (last..=2.max(last.next_power_of_two())).contains(&capacity),
                "{rows} rows in a plan for {capacity}"
            );
        }
    }
}

#[test]
fn windows_that_end_within_and_between_chunks_change_nothing() {
    same_in_chunks(&Tiny::gemma2(), &[7], 1.0);
    same_in_chunks(&Tiny::gemma3(), &[7], 1.0);
    // Gemma 4 does not scale its scores, so their rounding errors are larger, as they are between
    // float32 and float64.
    same_in_chunks(&Tiny::gemma4(), &[7, 64], 5.0);
    same_in_chunks(&Tiny::gemma4_dense(), &[64], 5.0);
    same_in_chunks(&Tiny::gemma4_experts(), &[64], 5.0);
}

#[test]
fn every_kv_type_is_close_to_f32_and_takes_its_own_size() {
    let (tiny, tokens) = (Tiny::qwen3(), ids(40, 3));
    for executor in both() {
        let of = |kv| all_of(&tiny, &executor, exact(16).kv(kv), &tokens);
        let bytes = |kv| tiny.on(&executor).session(exact(16).kv(kv)).unwrap().state_bytes();
        let (f32, f16, q8_0) = (of(KvType::F32), of(KvType::F16), of(KvType::Q8_0));
        let apart = (worst(&f32, &f16), worst(&f32, &q8_0));
        assert!((1e-7..3e-2).contains(&apart.0) && (1e-4..3e-1).contains(&apart.1), "{}: {apart:?}", executor.kind());
        // Two layers of keys and values, 32 wide, at 1024 positions, each with an id of 4 bytes. A
        // row of 8-bit blocks has 34 bytes, padded to a multiple of 16.
        let sizes = [KvType::F32, KvType::F16, KvType::Q8_0].map(|kv| (bytes(kv) - 4 * 1024) / (4 * 1024));
        assert_eq!(sizes, [128, 64, 48]);
    }
}

#[test]
fn growing_the_cache_keeps_what_it_holds() {
    let (tiny, tokens) = (Tiny::narrow(), ids(1100, 4));
    for executor in both() {
        let model = tiny.on(&executor);
        for kv in [KvType::F32, KvType::F16, KvType::Q8_0] {
            let mut small = model.session(exact(256).kv(kv)).unwrap();
            small.feed(&tokens[..900]).unwrap();
            small.prefill(None).unwrap();
            let before = small.state_bytes();
            small.feed(&tokens[900..]).unwrap();
            let grown = logits(&mut small).0;
            assert_eq!(small.state_bytes(), 2 * before, "doubled once");
            // The larger session allocates its whole cache before it reads a token.
            let mut large = model.session(exact(2048).kv(kv)).unwrap();
            large.feed(&tokens).unwrap();
            let whole = logits(&mut large).0;
            let apart = worst(&whole[900 * VOCABULARY as usize..], &grown);
            let bound = if kv == KvType::F32 { CHUNKING } else { 3e-2 };
            assert!(apart <= bound, "{} {kv:?}: {apart:e}", executor.kind());
        }
    }
}

#[test]
fn logits_come_in_chunks_that_one_binding_holds() {
    let Executor::Gpu(device) = gpu() else { unreachable!() };
    // Room for 20 rows of logits. Every weight is split into several parts.
    let caps = Caps { max_binding_bytes: 20 * 4 * u64::from(VOCABULARY), ..device.caps().clone() };
    let small = Executor::Gpu(device.with_caps(caps));
    let tiny = Tiny { context: 64, ..Tiny::qwen3() };
    let (tokens, mut starts) = (ids(50, 5), vec![]);
    let mut session = tiny.on(&small).session(exact(32)).unwrap();
    session.feed(&tokens).unwrap();
    session.logits(|from, rows, _| starts.push((from, rows.len() / VOCABULARY as usize))).unwrap();
    assert_eq!(starts, [(0, 20), (20, 20), (40, 10)]);
    session.reset();
    session.feed(&tokens).unwrap();
    let apart = worst(&all_of(&tiny, &gpu(), exact(32), &tokens), &logits(&mut session).0);
    assert!(apart <= CHUNKING, "{apart:e}");
}

#[test]
fn nothing_left_to_evaluate_gives_no_chunk() {
    let mut session = Tiny::qwen3().on(&Executor::Cpu).session(exact(8)).unwrap();
    session.logits(|_, _, _| panic!("nothing was fed")).unwrap();
    session.feed(&ids(9, 1)).unwrap();
    session.prefill(None).unwrap();
    session.logits(|_, _, _| panic!("all is evaluated")).unwrap();
}

#[test]
fn taps_are_found_by_name_and_agree_between_executors() {
    let tokens = ids(11, 6);
    for tiny in [Tiny::qwen3(), Tiny::qwen2()] {
        let names = ["attn_norm", "layer_out", "embed", "output_norm"].map(String::from).to_vec();
        let tapped = [Executor::Cpu, gpu(), webgpu()].map(|executor| {
            let options = exact(16).plan(PlanOptions::plain().taps(names.clone()));
            let mut session = tiny.on(&executor).session(options).unwrap();
            session.feed(&tokens).unwrap();
            logits(&mut session)
        });
        let expected = ["embed 0", "attn_norm 0", "layer_out 0", "attn_norm 1", "layer_out 1", "output_norm 0"];
        let plain = all_of(&tiny, &gpu(), exact(16), &tokens);
        assert!(worst(&plain, &tapped[1].0) <= CHUNKING, "a tap changes nothing");
        for (_, taps) in &tapped {
            let found: Vec<String> = taps.iter().map(|t| format!("{} {}", t.name, t.layer)).collect();
            assert_eq!(found, expected);
            for (tap, reference) in taps.iter().zip(&tapped[0].1) {
                assert_eq!(tap.values.len(), tokens.len() * tiny.embedding as usize);
                let apart = worst(&reference.values, &tap.values);
                assert!(apart <= EXECUTORS, "{} {}: {apart:e}", tap.name, tap.layer);
            }
        }
    }
}

#[test]
fn a_tap_that_the_model_does_not_have_is_refused_with_those_that_it_has() {
    let options = exact(16).plan(PlanOptions::plain().taps(vec!["layer_out".into(), "no_such_tap".into()]));
    let model = Tiny::qwen3().on(&Executor::Cpu);
    let error = model.session(options).map(drop).unwrap_err();
    assert!(matches!(&error, model::Error::Tap { name, known } if name == "no_such_tap" && *known == model.taps()));
    assert!(error.to_string().contains("attn_k_rope, attn_norm"), "{error}");
}

#[test]
fn the_experts_of_every_row_are_tapped_as_whole_numbers() {
    let (tokens, plan) = (ids(11, 6), PlanOptions::plain().taps(vec!["experts".into()]));
    for tiny in [Tiny::qwen3moe(), Tiny::qwen2moe(), Tiny::gemma4_experts()] {
        let tapped = [Executor::Cpu, gpu()].map(|executor| {
            let mut session = tiny.on(&executor).session(exact(16).plan(plan.clone())).unwrap();
            session.feed(&tokens).unwrap();
            logits(&mut session).1
        });
        let layers: Vec<u32> = tapped[0].iter().map(|tap| tap.layer).collect();
        assert_eq!(layers, (0..tiny.layers).collect::<Vec<_>>(), "{}", tiny.architecture);
        for (host, device) in tapped[0].iter().zip(&tapped[1]) {
            assert_eq!(host.values, device.values, "{} layer {}", tiny.architecture, host.layer);
            assert_eq!(host.values.len() % tokens.len(), 0);
            assert!(
                host.values.iter().all(|id| id.fract() == 0.0 && (0.0..tiny.experts as f32).contains(id)),
                "{:?}",
                host.values
            );
            assert!(host.values.iter().any(|id| *id != host.values[0]));
        }
    }
}
