//! Parity of every kernel with its oracle on this machine's adapter, which must exist, under its
//! own limits and under WebGPU's.

mod once_red;
mod shrinks;
mod wrongs;

use cpu_ref::KvType;
use gguf::GgmlType;
use kernels::testing::Switches;
use kernels::testing::cases;
use kernels::testing::drawn::{self, Drawn, Draws};
use kernels::testing::kernel::compose::Shader;
use kernels::testing::kernel::random::Gen;
use kernels::testing::kernel::split::parts;
use kernels::testing::kinds::kinds;
use kernels::testing::matmul::matmul_vec_q8::matmul_q8;
use kernels::testing::norm::pack_q8::pack_q8;
use kernels::testing::parity::Case;
use kernels::testing::sweep::{self, Outcome, Target};
use kernels::{Caps, Device, Executor, Limits, PlanOptions, Precision, Select, StateKind, ops};
use once_red::once_red;
use proptest::test_runner::{TestError, TestRunner};
use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

static DEVICE: LazyLock<Device> = LazyLock::new(|| open(Limits::from_env()));

fn open(limits: Limits) -> Device {
    sweep::open(&Select::Best, limits)
        .unwrap_or_else(|e| panic!("{e}; install a driver (Debian: mesa-vulkan-drivers libvulkan1)"))
}

fn hold(what: &str, outcome: &Outcome) {
    let ran: Vec<_> = outcome.shaders.iter().map(Shader::label).collect();
    let Outcome { worst, overrun, smallest, .. } = outcome;
    smallest.iter().for_each(keep);
    assert!(
        outcome.holds(),
        "{what} ({}): {worst:?}, wrote past an end: {overrun}; the smallest case: {smallest:?}",
        ran.join(", ")
    );
}

fn compare(device: &Device, what: &str, case: Case) -> Outcome {
    let outcome = case.compare(device, true).unwrap_or_else(|e| panic!("{what}: {e}"));
    hold(what, &outcome);
    outcome
}

/// One case of one shader of every n-th variant that a device with these limits may run; every
/// second case is split. `verify-shaders` runs all shaders under both limits, with more cases.
fn cover(limits: Limits, every: usize) {
    let device = open(limits);
    for (n, target) in Target::few(device.caps()).iter().enumerate().step_by(every) {
        let label = target.shader.label();
        let outcome = target.run_from(&device, 0, n, 1).unwrap_or_else(|e| panic!("{label}: {e}"));
        hold(&label, &outcome);
    }
}

#[test]
fn every_variant_in_one_format_matches_its_oracle() {
    cover(Limits::from_env(), 1);
}

#[test]
fn every_third_portable_variant_in_one_format_matches_its_oracle_under_webgpus_default_limits() {
    assert!(!open(Limits::WebGpu).caps().subgroups, "WebGPU's defaults have no optional feature");
    // A software driver compiles each of them for a quarter of a second, once.
    cover(Limits::WebGpu, 3);
}

/// The list of cases that once failed.
const ONCE_RED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parity/once_red.rs");

/// Adds a failing case to the list, so that the next run of the tests begins with it.
fn keep(drawn: &Drawn) {
    static KEEPING: Mutex<()> = Mutex::new(());
    let _guard = KEEPING.lock();
    let list = std::fs::read_to_string(ONCE_RED).expect("the list beside this file");
    if let Some(list) = drawn.added_to(&list) {
        std::fs::write(ONCE_RED, list).unwrap_or_else(|e| eprintln!("{ONCE_RED}: {e}; add this case:\n{drawn:?}"));
    }
}

/// Runs the cases that once failed, then random cases of every operation. The first test that a
/// case fails shrinks it and adds it to the list.
#[test]
fn cases_that_once_failed_and_random_cases_match_their_oracles() {
    for drawn in once_red() {
        drawn::holds(&drawn, &DEVICE).unwrap_or_else(|e| panic!("{e}\n{drawn:?}"));
    }
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    if let Err(e) = TestRunner::new(drawn::config(cases)).run(&Draws::all(), |drawn| drawn::holds(&drawn, &DEVICE)) {
        if let TestError::Fail(_, drawn) = &e {
            keep(drawn);
        }
        panic!("{e}");
    }
}

/// Plans of one row whose kernels are compiled for their params, over states of one sequence and of
/// several.
#[test]
fn kernels_compiled_for_their_params_match_their_oracles() {
    let mut compiled = HashSet::new();
    for (stem, make) in cases() {
        for seed in 0..8 {
            let case = make(&mut Gen::new(seed)).compiled();
            let of = |shaders: Vec<Shader>| {
                shaders.into_iter().filter(|shader| !shader.given.is_empty()).collect::<Vec<_>>()
            };
            let shaders = of(case.shaders(DEVICE.caps(), false).unwrap_or_else(|e| panic!("{stem}: {e}")));
            if shaders.iter().all(|shader| compiled.contains(&(shader.variant.name, shader.given.contains(&None)))) {
                continue;
            }
            compiled.extend(shaders.iter().map(|shader| (shader.variant.name, shader.given.contains(&None))));
            let outcome = case.compare(&DEVICE, false).unwrap_or_else(|e| panic!("{stem}: {e}"));
            hold(&format!("{stem} with seed {seed}"), &outcome);
        }
    }
    let variants: HashSet<_> = Target::all(DEVICE.caps()).iter().map(|target| target.shader.variant.name).collect();
    let wanted =
        [("matmul_vec_q8", false), ("embed", true), ("attention_decode_128", true), ("attention_decode_128", false)];
    for (name, reads) in wanted.into_iter().filter(|(name, _)| variants.contains(name)) {
        assert!(compiled.contains(&(name, reads)), "{name}, which reads a param: {reads}");
    }
}

/// Plans of so many rows that only the params that a kernel names are constants. Short rows of Q8_0
/// keep the branch for absent rows.
#[test]
fn products_in_8_bits_of_many_rows_match_their_oracles() {
    let kernels = [(1, "matmul_rows8"), (3, "matmul_rows8_group"), (2, "matmul_rows8_glu")];
    for (ty, (weights, kernel)) in [GgmlType::Q4_K, GgmlType::Q8_0].into_iter().flat_map(|ty| kernels.map(|k| (ty, k)))
    {
        let mut g = Gen::new(3);
        let mut case = Case::new(70);
        let x = case.uniform(&mut g, 512, 0.125);
        let packed = pack_q8(&mut case.rec, x);
        let products: Vec<_> = (0..weights)
            .map(|_| {
                let w = case.weight(&mut g, ty, 96, 512);
                matmul_q8(&mut case.rec, w, packed)
            })
            .collect();
        if let [gate, up] = products[..] {
            let y = ops::swiglu(&mut case.rec, gate, up);
            let packed = pack_q8(&mut case.rec, y);
            case.expect(packed);
        } else {
            products.into_iter().for_each(|y| case.expect(y));
        }
        let outcome = compare(&DEVICE, &format!("{kernel} {ty}"), case.compiled());
        // WebGPU's limits have too few storage buffers for three products. Each runs alone then.
        let fits = Target::all(DEVICE.caps()).iter().any(|target| target.shader.variant.kernel.name == kernel);
        let kernel = if fits { kernel } else { kernel.trim_end_matches("_group") };
        let ran = outcome.shaders.iter().find(|shader| shader.variant.kernel.name == kernel);
        let labels: Vec<_> = outcome.shaders.iter().map(Shader::label).collect();
        let given = &ran.unwrap_or_else(|| panic!("{kernel} is not among {labels:?}")).given;
        let many = u32::from(ty == GgmlType::Q4_K);
        assert!(given.contains(&Some(many)) && given.contains(&None), "{kernel} {ty}: {given:?}");
    }
}

/// More workgroups than one dimension holds, in kernels that number rows, groups of rows, and
/// elements.
#[test]
fn grids_above_65535_workgroups() {
    let mut g = Gen::new(7);
    let mut norm = Case::new(65_537);
    let (w, x) = (norm.vector(&mut g, 4), norm.uniform(&mut g, 4, 2.0));
    let y = ops::rms_norm(&mut norm.rec, x, Some(w), 1e-6);
    norm.expect(y);
    compare(&DEVICE, "rms_norm of 65537 rows", norm);

    let mut product = Case::new(1);
    let w = product.weight(&mut g, GgmlType::F16, 4 * 65_535 + 5, 32);
    let x = product.uniform(&mut g, 32, 2.0);
    let y = ops::matmul(&mut product.rec, w, x);
    product.expect(y);
    compare(&DEVICE, "matmul_vec of 262145 rows", product);

    let mut sum = Case::new(65_537);
    let (b, a) = (sum.vector(&mut g, 256), sum.uniform(&mut g, 256, 2.0));
    let y = ops::add_bias(&mut sum.rec, a, b);
    sum.expect(y);
    compare(&DEVICE, "add of 16777472 elements", sum);
}

/// A weight of at least three bindings: formats with a codebook before the rows, with planes, and
/// with whole blocks.
#[test]
fn weights_split_over_several_bindings() {
    let caps = Caps { max_binding_bytes: 24 << 10, ..DEVICE.caps().clone() };
    let device = DEVICE.with_caps(caps.clone());
    let mut g = Gen::new(11);
    for ty in [GgmlType::F16, GgmlType::Q4_0, GgmlType::Q4_K, GgmlType::Q6_K, GgmlType::IQ2_S] {
        let cols = 512;
        let rows = (1..).find(|&rows| parts(&caps, ty, rows, cols).len() == 4).expect("a number of rows in four parts");
        for tokens in [1, 3] {
            let mut case = Case::new(tokens);
            let w = case.weight(&mut g, ty, rows, cols);
            let x = case.uniform(&mut g, cols, 2.0);
            let y = ops::matmul(&mut case.rec, w, x);
            case.expect(y);
            let what = format!("{tokens} rows by {ty} in parts");
            assert_eq!(compare(&device, &what, case).shaders.len(), 4, "{what}: dispatches");
        }
        let mut case = Case::with_states(9, &[StateKind::Tokens], 2, 8);
        let table = case.weight(&mut g, ty, rows, cols);
        case.place(&mut g, 13);
        case.tokens(&mut g, rows);
        let tokens = case.rec.state(0);
        let y = ops::embed(&mut case.rec, table, tokens);
        case.expect(y);
        compare(&device, &format!("embed from {ty} in parts"), case);
    }
}

/// Every format, KV type and reduction is a target with a name, so that the cover above does not
/// depend on chance.
#[test]
fn targets_name_every_format_and_kv_type_of_every_variant() {
    let caps = Caps { subgroups: true, ..DEVICE.caps().clone() };
    let labels: Vec<_> = Target::all(&caps).iter().map(|t| t.shader.label()).collect();
    for format in kernels::testing::kernel::format::FORMATS {
        let name = format.ty.name().to_lowercase();
        for variant in ["embed", "matmul", "matmul_vec"] {
            assert!(labels.contains(&format!("{variant} {name}")), "{variant} {name}");
        }
        assert!(labels.contains(&format!("matmul_vec {name} +subgroups")), "matmul_vec {name} +subgroups");
    }
    for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
        let ty = format!("{ty:?}").to_lowercase();
        assert!(
            labels.contains(&format!("kv_append kv-{ty} kv-{ty}"))
                && labels.contains(&format!("attention kv-{ty} kv-{ty} +subgroups")),
            "{ty}"
        );
    }
}

/// The two tests of variants run few shaders.
#[test]
fn few_targets_have_every_variant_and_both_forms_and_every_format_and_kv_type() {
    for caps in &kinds() {
        let (few, all) = (Target::few(caps), Target::all(caps));
        let variants = |of: &[Target]| of.iter().map(|t| t.shader.variant.name).collect::<HashSet<_>>();
        let forms = |of: &[Target]| of.iter().map(|t| (t.shader.subgroups, t.shader.wide)).collect::<HashSet<_>>();
        let pieces = |of: &[Target]| of.iter().flat_map(|t| t.shader.pieces.clone()).collect::<HashSet<_>>();
        assert_eq!((variants(&few), forms(&few)), (variants(&all), forms(&all)));
        assert_eq!(pieces(&few), pieces(&all));
        let most = variants(&all).len() + pieces(&all).len();
        assert!(few.len() <= most, "{} shaders, at most {most}: a variant once, and one more for a piece", few.len());
    }
}

/// A result is one sum in the order of the columns, whichever threads add it up.
#[test]
fn few_tiles_of_a_product_and_many_give_the_same_bits() {
    for ty in [GgmlType::F32, GgmlType::F16, GgmlType::Q4_K] {
        let of = |workgroups| {
            let mut g = Gen::new(5);
            let mut case = Case::new(130);
            case.workgroups = Some(workgroups);
            let w = case.weight(&mut g, ty, 200, 768);
            let x = case.tensor(&mut g, 768);
            let y = ops::matmul(&mut case.rec, w, x);
            case.expect(y);
            let precise = PlanOptions::plain().precision(Precision::F32);
            let (words, shaders) = case.run(&Executor::Gpu(DEVICE.clone()), &precise).unwrap();
            (words, shaders.iter().map(|shader| shader.label()).collect::<Vec<_>>())
        };
        let (few, many) = (of(4096), of(1));
        assert!(few.1[0].starts_with("matmul ") && many.1[0].starts_with("matmul_many "), "{:?} {:?}", few.1, many.1);
        assert_eq!(few.0, many.0, "{ty}");
    }
}

/// Only plans, for devices that this machine does not have. A kernel that only these devices run is
/// tested only if the cases of its format reach it.
#[test]
fn every_kernel_is_reached_by_cases_on_devices_of_every_kind() {
    let mut missed = vec![];
    for caps in &kinds() {
        let unreached = Target::all(caps).into_iter().filter(|target| target.find(caps, &mut (0..256)).is_none());
        missed.extend(unreached.map(|target| (target.shader.label(), caps.subgroup_size, caps.cooperative)));
    }
    assert!(missed.is_empty(), "by (kernel, threads of a subgroup, cooperative matrices): {missed:?}");
}
