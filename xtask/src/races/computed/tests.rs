//! Tests that hold what the interpreter computes to the oracles.

use super::{Staging, Trial, cooperative, one_of_each};
use crate::lanes;
use kernels::testing::kinds::card;
use kernels::testing::lower;
use kernels::testing::parity::Case;
use kernels::testing::sweep::Target;
use kernels::{Caps, Class};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;

/// The card whose plans have cooperative matrices.
fn cooperating() -> Caps {
    card(Class::Discrete, 32, true)
}

/// Runs the least case of each shader, on the plan of a device, in subgroups of so many threads.
/// Panics with the list of those whose results are not those of the oracles.
fn hold(targets: &[Target], caps: &Caps, subgroup: usize) {
    let wrong = Mutex::new(vec![]);
    let work = |_: &mut (), target: &Target| {
        let (label, begin) = (target.shader.label(), Instant::now());
        let verdict = match target.least(caps) {
            None => Some("no case reaches it".to_string()),
            Some((drawn, case)) => match Trial::of(target, &case, caps, subgroup, u64::MAX) {
                Ok(trial) if trial.right.holds() => None,
                Ok(trial) => Some(format!("{:?}: {drawn:?}", trial.right.worst)),
                Err(error) => Some(format!("{error:#}: {drawn:?}")),
            },
        };
        println!("{label}: {:.2} s", begin.elapsed().as_secs_f64());
        wrong.lock().unwrap().extend(verdict.map(|verdict| format!("{label}: {verdict}")));
        Ok(())
    };
    lanes::each(lanes::cores(), targets, || Ok(()), work).unwrap();
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} in subgroups of {subgroup}: {}", wrong.len(), targets.len(), wrong.join("\n"));
}

/// The shaders with cooperative matrices whose family is attention, or is not.
fn hold_cooperative(attention: bool) {
    let caps = cooperating();
    let of = cooperative(&caps).into_iter().filter(|target| target.shader.variant.kernel.main().0.starts_with("attention/") == attention);
    let targets: Vec<_> = of.collect();
    assert!(targets.len() > 20, "only {}", targets.len());
    hold(&targets, &caps, 32);
}

#[test]
fn products_in_cooperative_matrices_are_those_of_the_oracles() {
    hold_cooperative(false);
}

#[test]
fn attention_in_cooperative_matrices_is_that_of_the_oracles() {
    hold_cooperative(true);
}

#[test]
fn every_variant_with_cooperative_matrices_is_computed_in_every_staging_and_cache_type() {
    let targets = cooperative(&cooperating());
    let names: BTreeSet<_> = targets.iter().map(|target| target.shader.variant.name).collect();
    let all: BTreeSet<_> = lower::variants().filter(|variant| variant.kernel.cooperative()).map(|variant| variant.name).collect();
    assert_eq!(names, all);
    let kernels: BTreeSet<_> = targets.iter().map(|target| target.shader.variant.kernel.name).collect();
    for kernel in [
        "matmul_tile128_glu",
        "matmul_input_tile128",
        "matmul_weight_tile128",
        "attention_lse_flash",
        "attention_backward_q_flash",
        "attention_backward_kv_flash",
    ] {
        assert!(kernels.contains(kernel), "{kernel}");
    }
    let stagings = |file: &str| -> BTreeSet<_> {
        targets.iter().filter(|of| of.shader.variant.kernel.main().0 == file).filter_map(|of| of.format().map(Staging::of)).collect()
    };
    let every = BTreeSet::from([Staging::Units, Staging::F16, Staging::Bf16, Staging::Elements]);
    assert_eq!(stagings("matmul/matmul_input_tile128.wgsl"), every);
    assert_eq!(stagings("matmul/matmul_tile128.wgsl"), every);
    let caches: BTreeSet<_> = targets.iter().map(|of| of.shader.label()).filter(|label| label.starts_with("attention_flash_64 ")).collect();
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

/// The shaders of a device with such subgroups, or larger ones, that exchange values in them: of
/// every variant and type of states one. Its weight format is another one for every size. They run
/// in subgroups of `subgroup` threads.
fn hold_exchanging(smallest: u32, subgroup: usize) {
    let caps = card(Class::Discrete, smallest, false);
    let targets = Target::all(&caps).into_iter();
    let targets = targets.filter(|target| target.shader.subgroups && target.shader.fewest_threads() <= smallest);
    let targets = one_of_each(targets, smallest as usize + subgroup, |_| ());
    assert!(targets.len() > 20, "only {}", targets.len());
    hold(&targets, &caps, subgroup);
}

#[test]
fn subgroups_of_4_threads_compute_what_the_oracles_do() {
    hold_exchanging(4, 4);
}

#[test]
fn subgroups_of_8_threads_compute_what_the_oracles_do() {
    hold_exchanging(8, 8);
}

#[test]
fn subgroups_of_16_threads_compute_what_the_oracles_do() {
    hold_exchanging(16, 16);
}

#[test]
fn subgroups_of_32_threads_compute_what_the_oracles_do() {
    hold_exchanging(32, 32);
}

#[test]
fn subgroups_of_64_threads_compute_what_the_oracles_do() {
    hold_exchanging(64, 64);
}

#[test]
fn subgroups_that_are_larger_than_the_smallest_compute_what_the_oracles_do() {
    hold_exchanging(8, 32);
    hold_exchanging(32, 64);
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
