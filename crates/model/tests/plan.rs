//! The plan of a decode step, per architecture, as `weft inspect --plan` prints it.

mod common;
#[path = "common/lora.rs"]
mod lora;

use common::{Tiny, open};
use gguf::GgmlType;
use kernels::testing::Switches;
use kernels::testing::kinds::kinds;
use kernels::testing::sweep::refusal;
use kernels::{Caps, Class, Executor, PlanOptions, Precision, Table};
use lora::{LINEARS, Lora};
use model::SessionOptions;
use std::collections::HashSet;

/// These limits are the same on every machine.
const CAPS: Caps = Caps::WEBGPU;

fn planned(tiny: &Tiny, caps: &Caps, options: &PlanOptions) -> String {
    planned_for(tiny, 1, caps, options)
}

fn planned_for(tiny: &Tiny, rows: u32, caps: &Caps, options: &PlanOptions) -> String {
    let checked = open(&tiny.file()).expect("a good file").check(&Executor::Cpu).expect("a model");
    let rec = checked.recording(&SessionOptions::default(), rows);
    kernels::plan::plan(&rec, caps, options).expect("plans").to_string()
}

#[test]
fn qwen3() {
    insta::assert_snapshot!(planned(&Tiny { layers: 1, ..Tiny::qwen3() }, &CAPS, &PlanOptions::plain()));
}

#[test]
fn qwen2_with_its_biases_in_the_products() {
    insta::assert_snapshot!(planned(&Tiny { layers: 1, ..Tiny::qwen2() }, &CAPS, &PlanOptions::plain()));
}

/// Five kernels a layer over few keys, and the three of attention over many.
#[test]
fn qwen2_of_16_bits_where_bindings_suffice() {
    let caps = Caps { max_storage_buffers: 16, ..CAPS };
    insta::assert_snapshot!(planned(
        &Tiny { layers: 1, ..Tiny::qwen2() },
        &caps,
        &PlanOptions::plain().precision(Precision::Fast)
    ));
}

#[test]
fn qwen3moe_reads_each_choice_alone_in_a_decode_step() {
    insta::assert_snapshot!(planned(&Tiny { layers: 1, ..Tiny::qwen3moe() }, &CAPS, &PlanOptions::plain()));
}

#[test]
fn qwen2moe_groups_a_prompt_by_expert() {
    insta::assert_snapshot!(planned_for(&Tiny { layers: 1, ..Tiny::qwen2moe() }, 64, &CAPS, &PlanOptions::plain()));
}

#[test]
fn routers_stay_in_f32_where_other_products_are_narrowed() {
    let options = PlanOptions::plain().precision(Precision::Fast);
    let caps = Caps { cooperative: true, table: Table::usual(Class::Discrete, true), ..CAPS };
    for tiny in [Tiny::qwen3moe(), Tiny::qwen2moe()] {
        let plan = planned_for(&Tiny { layers: 1, ..tiny }, 64, &caps, &options);
        assert!(
            plan.contains("matmul_tile64 f16")
                && plan.contains(" matmul_narrow ")
                && !plan.contains("matmul_tile128 f32"),
            "{plan}"
        );
    }
}

#[test]
fn experts_past_the_binding_limit_are_split_within_an_expert() {
    let caps = Caps { max_binding_bytes: 64 << 10, ..CAPS };
    insta::assert_snapshot!(planned_for(
        &Tiny { layers: 1, feed_forward: 768, ..Tiny::qwen3moe().mixed() },
        16,
        &caps,
        &PlanOptions::plain()
    ));
}

#[test]
fn gemma2() {
    insta::assert_snapshot!(planned(&Tiny { layers: 1, ..Tiny::gemma2() }, &CAPS, &PlanOptions::plain()));
}

#[test]
fn gemma3() {
    insta::assert_snapshot!(planned(&Tiny { layers: 1, ..Tiny::gemma3() }, &CAPS, &PlanOptions::plain()));
}

#[test]
fn gemma4_shares_the_states_of_the_last_layer_of_the_same_kind() {
    insta::assert_snapshot!(planned(&Tiny::gemma4(), &CAPS, &PlanOptions::plain()));
}

#[test]
fn gemma4_with_keys_for_values() {
    insta::assert_snapshot!(planned(&Tiny::gemma4_dense(), &CAPS, &PlanOptions::plain()));
}

#[test]
fn a_weight_past_the_binding_limit_is_split_by_rows() {
    let caps = Caps { max_binding_bytes: 8 << 10, ..CAPS };
    insta::assert_snapshot!(planned(&Tiny { layers: 1, ..Tiny::qwen3() }, &caps, &PlanOptions::plain()));
}

#[test]
fn an_adapter_costs_two_products_a_scale_and_a_sum_for_each_layer_that_it_is_over() {
    let tiny = Tiny { layers: 1, ..Tiny::qwen3() };
    let dispatches = |linears: &[&str], rows: u32, options: &PlanOptions| {
        let mut checked = open(&tiny.file()).expect("a good file").check(&Executor::Cpu).expect("a model");
        if !linears.is_empty() {
            checked.adapt(&Lora::random(&tiny, 4, 1, linears).peft(GgmlType::F32, ""), 1.0).expect("fits");
        }
        let plan =
            kernels::plan::plan(&checked.recording(&SessionOptions::default(), rows), &CAPS, options).expect("plans");
        let text = plan.to_string();
        let count = text.lines().find_map(|line| line.split_once(" dispatches, ")?.0.parse::<usize>().ok());
        count.expect("the plan counts its dispatches")
    };
    for rows in [1, 64] {
        // Products of one row merge with operations before and after them. An adapter parts them.
        let options = PlanOptions::plain().unfused(rows == 1);
        let plain = dispatches(&[], rows, &options);
        for (linear, _) in LINEARS.into_iter().filter(|(ours, _)| tiny.shape(&format!("blk.0.{ours}.weight")).is_some())
        {
            assert_eq!(dispatches(&[linear], rows, &options) - plain, 4, "{linear}, {rows} rows");
        }
        assert_eq!(dispatches(&LINEARS.map(|(ours, _)| ours), rows, &options) - plain, 28, "{rows} rows");
    }
}

#[test]
fn unfused_is_longer_and_a_tap_ends_a_fusion() {
    let tiny = Tiny { layers: 1, ..Tiny::qwen2() };
    let lines = |options: &PlanOptions| planned(&tiny, &CAPS, options).lines().count();
    let fused = lines(&PlanOptions::plain());
    assert!(lines(&PlanOptions::plain().unfused(true)) > fused);
    let tapped = PlanOptions::plain().taps(vec!["layer_out".into()]);
    // With taps, the sum, the gather and the norm of the one row are not fused.
    assert_eq!(lines(&tapped), fused + 2);
}

#[test]
fn a_batch_goes_through_small_tiles_where_matrices_cooperate_and_a_smaller_one_in_8_bits() {
    let options = PlanOptions::plain().precision(Precision::Fast);
    let caps = Caps { cooperative: true, table: Table::usual(Class::Discrete, true), ..CAPS };
    let tiny = Tiny { layers: 1, ..Tiny::qwen3().mixed() };
    let kernels = |rows| planned_for(&tiny, rows, &caps, &options);
    for (rows, kernel) in [
        (8, "matmul_rows8_8_short "),
        (9, "matmul_tile16 "),
        (16, "matmul_tile16 "),
        (17, "matmul_tile32 "),
        (64, "matmul_tile64 "),
        (48, "matmul_tile48 "),
        (65, "matmul_tile80 "),
        (96, "matmul_tile96 "),
        (1025, "matmul_tile128_groups_narrow "),
    ] {
        let plan = kernels(rows);
        assert!(plan.contains(kernel), "{rows} rows:\n{plan}");
    }
    assert!(!planned_for(&tiny, 16, &CAPS, &options).contains("matmul_tile16"));
}

/// Plans as sessions make them, with params as constants, for devices that this machine does not
/// have.
#[test]
fn shaders_of_sessions_are_wgsl_on_devices_of_every_kind() {
    let dense = [Tiny::qwen3(), Tiny::qwen3().mixed(), Tiny::qwen2(), Tiny::gemma2(), Tiny::gemma3(), Tiny::gemma4()];
    let experts = [Tiny { feed_forward: 768, ..Tiny::qwen3moe().mixed() }, Tiny::qwen2moe(), Tiny::gemma4_experts()];
    let mut seen = HashSet::new();
    for tiny in dense.into_iter().chain(experts) {
        let checked = open(&tiny.file()).expect("a good file").check(&Executor::Cpu).expect("a model");
        for rows in [1, 2, 6, 8, 16, 64, 80, 128, 192, 512] {
            let rec = checked.recording(&SessionOptions::default(), rows);
            for (caps, precision) in kinds().iter().flat_map(|caps| [(caps, Precision::Fast), (caps, Precision::F32)]) {
                let options = PlanOptions::plain().precision(precision).specialize(true).sequences(1);
                for step in kernels::plan::plan(&rec, caps, &options).expect("plans").dispatches {
                    let refused = if seen.insert(step.shader.clone()) { refusal(&step.shader) } else { None };
                    assert!(
                        refused.is_none(),
                        "{} of {rows} rows: {}",
                        step.shader.label(),
                        refused.unwrap_or_default()
                    );
                }
            }
        }
    }
    assert!(
        seen.iter().any(|shader| shader.variant.name == "matmul_rows8_group_8_short" && shader.given.contains(&None))
    );
}
