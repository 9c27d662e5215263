//! Tables are saved and read back, and plans follow them.

use super::*;
use crate::attention::{self, attention_decode_case, attention_decode_split_case, merge_matmul_vec_case};
use crate::device::executor::Executor;
use crate::graph::tensor::{Counts, Lead, Shape};
use crate::kernel::Kernel;
use crate::matmul::matmul::matmul;
use crate::matmul::{
    matmul_rows8_case, matmul_rows8_group_case, matmul_vec_norm_case, matmul_vec_q8_case, norm_add_matmul_vec_case,
    norm_pack_matmul_vec_case, norm_pack_matmul_vec_glu_case,
};
use crate::plan::{PlanOptions, Precision, plan};
use crate::{Caps, Recorder, TensorBytes, Weights};
use gguf::GgmlType;

const USUAL: Table = Table::usual(Class::Discrete, true);

/// Two tables: every threshold at its lowest value, and every threshold at its highest.
fn extremes() -> [Table; 2] {
    let all = |end: fn(&Threshold) -> u32| {
        THRESHOLDS.iter().fold(USUAL, |table, threshold| threshold.set(table, end(threshold)))
    };
    [all(|threshold| *threshold.within.start()), all(|threshold| *threshold.within.end())]
}

#[test]
fn a_table_comes_back_whole_and_for_its_device_only() {
    for table in extremes().into_iter().chain([USUAL]) {
        let bytes = table.to_bytes("this device");
        assert_eq!(Table::from_bytes("this device", &bytes), Some(table));
        assert_eq!(Table::from_bytes("that device", &bytes), None);
        assert_eq!(Table::from_bytes("this devic", &bytes), None);
        for length in 0..bytes.len() {
            assert_eq!(Table::from_bytes("this device", &bytes[..length]), None, "cut at {length}");
        }
    }
}

#[test]
fn numbers_out_of_bounds_lines_too_many_and_other_forms_are_refused() {
    let text = String::from_utf8(USUAL.to_bytes("k")).unwrap();
    assert!(Table::from_bytes("k", text.as_bytes()).is_some());
    let replaced = [
        ("q8_rows 8", "q8_rows 2049"),
        ("q8_rows 8", "q8_rows -1"),
        ("q8_rows 8", "q8_rows "),
        ("q8_rows 8\n", ""),
        ("chunk 2048", "chunk 4096"),
        ("split_workgroups 512", "split_workgroups 0"),
        ("end\n", "chunk 512\nend\n"),
        ("table 2", "table 1"),
        ("tile64_rows", "many_rows"),
    ];
    for (old, new) in replaced {
        let damaged = text.replacen(old, new, 1);
        assert!(damaged != text && Table::from_bytes("k", damaged.as_bytes()).is_none(), "{damaged}");
    }
}

#[test]
fn the_usual_tables_are_within_their_bounds() {
    for (class, cooperative) in
        [(Class::Discrete, true), (Class::Discrete, false), (Class::Integrated, false), (Class::Software, false)]
    {
        let table = Table::usual(class, cooperative);
        for threshold in &THRESHOLDS {
            assert!(threshold.within.contains(&threshold.of(table)), "{} of {class:?}", threshold.name);
        }
    }
}

/// The kernels for a product of `rows` rows with a Q4_K weight.
fn product(rows: u32, caps: &Caps) -> String {
    let mut weights = Weights::new(&Executor::Cpu);
    let bytes = TensorBytes::Owned(vec![0; 256 * 144].into());
    let w = weights.matrix("w", GgmlType::Q4_K, 256, 256, &bytes).unwrap();
    let mut rec = Recorder::new(Counts { step: rows, out: 1 }, &[]);
    let x = rec.host_input(0, Shape::new(Lead::Step, rows, 256));
    let y = matmul(&mut rec, w, x);
    rec.output(y);
    plan(&rec, caps, &PlanOptions::plain().precision(Precision::Fast)).unwrap().to_string()
}

#[test]
fn rows_follow_the_table_at_each_threshold() {
    // On a device that runs one workgroup at a time, large tiles are never too few.
    let table = Table { q8_rows: 5, tile64_rows: 30, workgroups: 1, ..USUAL };
    let caps = Caps { cooperative: true, max_workgroup_bytes: 48 << 10, table, ..Caps::WEBGPU };
    for (rows, kernel) in [
        (1, "matmul_vec_q8 "),
        (5, "matmul_rows8_8_short "),
        (6, "matmul_tile16"),
        (30, "matmul_tile32"),
        (31, "matmul_tile128_groups"),
    ] {
        assert!(product(rows, &caps).contains(kernel), "{rows} rows: {}", product(rows, &caps));
    }
    // 64 rows by 256 are four tiles, which are few for the usual number of workgroups and many for
    // one.
    let few = Caps { cooperative: false, table: Table { q8_rows: 0, workgroups: USUAL.workgroups, ..table }, ..caps };
    let many = Caps { table: Table { workgroups: 1, ..few.table }, ..few.clone() };
    for (caps, rows, kernel) in
        [(&few, 1, "matmul_vec "), (&few, 2, "matmul "), (&few, 64, "matmul "), (&many, 64, "matmul_many ")]
    {
        let plan = product(rows, caps);
        assert!(plan.contains(kernel) && !plan.contains("q8"), "{rows} rows: {plan}");
    }
}

/// Holds the kernel to its oracle for every seed and every table. Where the device can run
/// `kernel`, the first two tables must choose different kernels for some seed.
fn holds(kernel: &Kernel, make: crate::testing::parity::MakeCase, seeds: std::ops::Range<u64>, tables: &[Table]) {
    let device = crate::device::tests::device();
    let mut differ = !kernel.fits(device.caps());
    for seed in seeds {
        let mut labels = vec![];
        for table in tables {
            let outcome = crate::testing::sweep::check(&device.with_table(*table), make, seed, false).expect("a run");
            assert!(outcome.holds(), "seed {seed} by {table:?}: {outcome:?}");
            labels.push(outcome.shaders.iter().map(crate::kernel::compose::Shader::label).collect::<Vec<_>>());
        }
        differ |= labels[0] != labels[1];
    }
    assert!(differ, "both tables take the same kernels for every seed");
}

#[test]
fn attention_is_right_by_any_table() {
    let split = |workgroups| Table { decode_keys: 0, split_workgroups: workgroups, ..USUAL };
    holds(
        &attention::attention_decode::ATTENTION_DECODE,
        attention_decode_case::case,
        0..6,
        &[USUAL, split(1), split(7), split(4096), Table { decode_keys: 100, ..USUAL }],
    );
}

#[test]
fn attention_of_shared_keys_is_right_by_parts_of_several_tiles() {
    let split = |workgroups| Table { split_workgroups: workgroups, ..USUAL };
    holds(
        &attention::attention_decode_split::ATTENTION_DECODE_SPLIT,
        attention_decode_split_case::case,
        0..6,
        &[USUAL, split(1), split(12)],
    );
}

#[test]
fn a_product_with_the_norm_behind_it_is_right_in_one_kernel_and_in_two() {
    let columns = |norm_columns| Table { norm_columns, ..USUAL };
    holds(
        &crate::matmul::matmul_vec_norm::MATMUL_VEC_NORM,
        matmul_vec_norm_case::case,
        0..4,
        &[columns(16), columns(0)],
    );
}

/// Sets every threshold to its lowest and its highest value, one at a time and all together. Only
/// the choice of kernels may change.
#[test]
fn products_are_right_by_any_table() {
    let mut tables: Vec<Table> = vec![USUAL];
    for threshold in &THRESHOLDS {
        tables.extend([threshold.within.start(), threshold.within.end()].map(|&end| threshold.set(USUAL, end)));
    }
    tables.extend(extremes());
    let device = crate::device::tests::device();
    let all: [(&str, crate::testing::parity::MakeCase); 8] = [
        ("matmul_vec_q8", matmul_vec_q8_case::case),
        ("matmul_vec_norm", matmul_vec_norm_case::case),
        ("matmul_rows8", matmul_rows8_case::case),
        ("matmul_rows8_group", matmul_rows8_group_case::case),
        ("norm_pack_matmul_vec", norm_pack_matmul_vec_case::case),
        ("norm_pack_matmul_vec_glu", norm_pack_matmul_vec_glu_case::case),
        ("norm_add_matmul_vec", norm_add_matmul_vec_case::case),
        ("merge_matmul_vec", merge_matmul_vec_case::case),
    ];
    let mut shaders = vec![std::collections::BTreeSet::new(); tables.len()];
    for (name, make) in all {
        for (table, taken) in tables.iter().zip(&mut shaders) {
            for seed in 0..2 {
                let outcome =
                    crate::testing::sweep::check(&device.with_table(*table), make, seed, false).expect("a run");
                assert!(outcome.holds(), "{name} with seed {seed} by {table:?}: {outcome:?}");
                taken.extend(outcome.shaders.iter().map(crate::kernel::compose::Shader::label));
            }
        }
    }
    // Where the device can run the kernel of a threshold, the threshold must change the choice.
    let chosen: [(&str, &Kernel); 4] = [
        ("vec_columns", &crate::matmul::matmul_vec_q8::MATMUL_VEC_Q8),
        ("prologue_columns", &crate::matmul::norm_pack_matmul_vec::NORM_PACK_MATMUL_VEC),
        ("glu_prologue_columns", &crate::matmul::norm_pack_matmul_vec_glu::NORM_PACK_MATMUL_VEC_GLU),
        ("window_keys", &attention::attention_decode_window::ATTENTION_DECODE_WINDOW),
    ];
    for (name, _) in chosen.into_iter().filter(|(_, kernel)| kernel.fits(device.caps())) {
        let at = THRESHOLDS.iter().position(|threshold| threshold.name == name).expect("a threshold");
        let ends = &shaders[1 + 2 * at..3 + 2 * at];
        assert_ne!(ends[0], ends[1], "{name} chooses nothing");
    }
}
