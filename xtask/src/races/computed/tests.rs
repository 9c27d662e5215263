//! Tests that hold what the interpreter computes to the oracles.

use super::held::{SUBGROUPS, cooperating, exchanging, wrong};
use super::{Staging, Trial, cooperative};
use kernels::testing::kinds::card;
use kernels::testing::language;
use kernels::testing::parity::Case;
use kernels::testing::sweep::Target;
use kernels::{Caps, Class};
use std::collections::BTreeSet;

fn hold(targets: &[Target], caps: &Caps, subgroup: u32) {
    let wrong = wrong(targets, caps, subgroup);
    assert!(wrong.is_empty(), "{} of {} in subgroups of {subgroup}: {}", wrong.len(), targets.len(), wrong.join("\n"));
}

/// Kernels that nothing computed once. `verify-shaders --interpret` computes all.
const COOPERATIVE: [&str; 6] = [
    "matmul_tile128_glu",
    "matmul_input_tile128",
    "matmul_weight_tile128",
    "attention_lse_flash",
    "attention_backward_q_flash",
    "attention_backward_kv_flash",
];

#[test]
fn kernels_in_cooperative_matrices_compute_what_the_oracles_do() {
    let caps = cooperating();
    let mut targets = cooperative(&caps);
    targets.retain(|target| COOPERATIVE.contains(&target.shader.variant.kernel.name));
    assert!(targets.len() > COOPERATIVE.len(), "only {}", targets.len());
    hold(&targets, &caps, 32);
}

#[test]
fn every_variant_with_cooperative_matrices_is_computed_in_every_staging_and_cache_type() {
    let targets = cooperative(&cooperating());
    let names: BTreeSet<_> = targets.iter().map(|target| target.shader.variant.name).collect();
    let all: BTreeSet<_> =
        language::variants().filter(|variant| variant.kernel.cooperative()).map(|variant| variant.name).collect();
    assert_eq!(names, all);
    let kernels: BTreeSet<_> = targets.iter().map(|target| target.shader.variant.kernel.name).collect();
    for kernel in COOPERATIVE {
        assert!(kernels.contains(kernel), "{kernel}");
    }
    let stagings = |file: &str| -> BTreeSet<_> {
        targets
            .iter()
            .filter(|of| of.shader.variant.kernel.main().0 == file)
            .filter_map(|of| of.format().map(Staging::of))
            .collect()
    };
    let every = BTreeSet::from([Staging::Units, Staging::F16, Staging::Bf16, Staging::Elements]);
    assert_eq!(stagings("matmul/matmul_input_tile128.wgsl"), every);
    assert_eq!(stagings("matmul/matmul_tile128.wgsl"), every);
    let caches: BTreeSet<_> =
        targets.iter().map(|of| of.shader.label()).filter(|label| label.starts_with("attention_flash_64 ")).collect();
    assert_eq!(caches.len(), 3, "{caches:?}");
    let formats: BTreeSet<_> = targets.iter().filter_map(|target| target.format().map(gguf::GgmlType::name)).collect();
    assert!(formats.len() > 15, "{formats:?}");
}

/// Kernels of every other kind: reductions, products in f32 and in 8 bits, attention, experts,
/// samplers.
const OTHERS: [&str; 9] = [
    "rms_norm +subgroups",
    "softmax",
    "matmul q4_k",
    "matmul_vec_q8 q4_0 +subgroups",
    "attention kv-f16 kv-f16",
    "group_experts",
    "top_k",
    "matmul_rows8_glu_4_silu_medium q4_k q4_k",
    "matmul_rows8_glu_8_gelu_short q8_0 q8_0",
];

#[test]
fn kernels_of_every_other_kind_compute_what_the_oracles_do() {
    let caps = card(Class::Discrete, 8, false);
    let mut targets = Target::all(&caps);
    targets.retain(|target| OTHERS.contains(&target.shader.label().as_str()));
    assert_eq!(targets.len(), OTHERS.len());
    hold(&targets, &caps, 8);
}

/// Every 16th shader, from another one on for each pair of sizes. `verify-shaders --interpret`
/// computes all.
#[test]
fn subgroups_of_any_size_compute_what_the_oracles_do() {
    for (n, sizes) in SUBGROUPS.into_iter().enumerate() {
        let caps = card(Class::Discrete, sizes[0], false);
        let targets = exchanging(&caps, sizes);
        assert!(targets.len() > 20, "only {} in {sizes:?}", targets.len());
        hold(&targets.into_iter().skip(n).step_by(16).collect::<Vec<_>>(), &caps, sizes[1]);
    }
}

#[test]
fn a_block_whose_threads_do_not_share_a_subgroup_is_wrong() {
    let caps = card(Class::Discrete, 4, false);
    let target = Target::all(&caps).into_iter().find(|target| target.shader.label() == "pack_q8 +subgroups").unwrap();
    assert_eq!(target.shader.fewest_threads(), 8);
    let case = target.least(&caps).unwrap().1;
    let right = |subgroup| Trial::of(&target, &case, &caps, subgroup, u64::MAX).is_ok_and(|trial| trial.right.holds());
    assert_eq!([4, 8, 64].map(right), [false, true, true]);
}

#[test]
fn the_least_case_reaches_the_shader_and_its_literal_is_the_case() {
    let caps = cooperating();
    for label in ["matmul_tile128_glu_silu q6_k q6_k", "matmul_weight_tile128", "softmax +subgroups"] {
        let target = Target::all(&caps).into_iter().find(|target| target.shader.label() == label).unwrap();
        let (drawn, case) = target.least(&caps).unwrap();
        let work = |case: &Case| case.work(&caps, !target.shader.subgroups).unwrap();
        assert!(work(&case).1.contains(&target.shader), "{label}");
        assert_eq!(work(&drawn.case()).0, work(&case).0, "{label}: {drawn:?}");
        let usual: Vec<_> = target.cases(&caps, 0, 8).map(|(_, case)| work(&case).0).collect();
        assert!(2 * work(&case).0 <= usual.iter().sum::<u64>() / 8, "{label}: {drawn:?} beside {usual:?}");
    }
}
