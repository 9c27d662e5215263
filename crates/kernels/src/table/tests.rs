//! Tables as files, and that plans follow them.

use super::*;
use crate::exec::Executor;
use crate::ops::{self, matmul};
use crate::plan::{PlanOptions, plan};
use crate::record::Recorder;
use crate::row::Row;
use crate::tensor::{Counts, Lead, Shape};
use crate::{Caps, TensorBytes, Weights};
use gguf::GgmlType;

const USUAL: Table = Table::usual(Class::Discrete, true);

/// The bounds of every threshold, all low and all high.
fn extremes() -> [Table; 2] {
    let all = |end: fn(&Threshold) -> u32| THRESHOLDS.iter().fold(USUAL, |table, threshold| threshold.set(table, end(threshold)));
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
        ("q8_rows 8", "q8_rows 33"),
        ("q8_rows 8", "q8_rows -1"),
        ("q8_rows 8", "q8_rows "),
        ("q8_rows 8\n", ""),
        ("chunk 2048", "chunk 4096"),
        ("split_workgroups 512", "split_workgroups 0"),
        ("end\n", "chunk 512\nend\n"),
        ("table 1", "table 2"),
        ("few_rows", "many_rows"),
    ];
    for (old, new) in replaced {
        let damaged = text.replacen(old, new, 1);
        assert!(damaged != text && Table::from_bytes("k", damaged.as_bytes()).is_none(), "{damaged}");
    }
}

#[test]
fn the_usual_tables_are_within_their_bounds() {
    for (class, cooperative) in [(Class::Discrete, true), (Class::Discrete, false), (Class::Integrated, false), (Class::Software, false)] {
        let table = Table::usual(class, cooperative);
        for threshold in &THRESHOLDS {
            assert!(threshold.within.contains(&threshold.of(table)), "{} of {class:?}", threshold.name);
        }
    }
}

/// The kernels of a product of so many rows with a Q4_K weight.
fn product(rows: u32, caps: &Caps) -> String {
    let mut weights = Weights::dry(&Executor::Cpu);
    let bytes = TensorBytes::Owned(vec![0; 256 * 144].into());
    let w = weights.matrix("w", GgmlType::Q4_K, 256, 256, &bytes).unwrap();
    let mut rec = Recorder::new(Counts { step: rows, out: 1 }, &[]);
    let x = rec.host_input(0, Shape::new(Lead::Step, rows, 256));
    let y = matmul(&mut rec, w, x);
    rec.output(y);
    plan(&rec, caps, &PlanOptions { fast: true, ..PlanOptions::default() }).unwrap().to_string()
}

#[test]
fn rows_follow_the_table_at_each_threshold() {
    let table = Table { q8_rows: 5, few_rows: 30, ..USUAL };
    let caps = Caps { cooperative: true, max_workgroup_bytes: 48 << 10, table, ..Caps::WEBGPU };
    for (rows, kernel) in
        [(1, "matmul_vec_q8 "), (5, "matmul_few_q8_8_short "), (6, "matmul_few_16"), (30, "matmul_few_32"), (31, "matmul_coop_groups ")]
    {
        assert!(product(rows, &caps).contains(kernel), "{rows} rows: {}", product(rows, &caps));
    }
    let caps = Caps { cooperative: false, table: Table { q8_rows: 0, ..table }, ..caps };
    for (rows, kernel) in [(1, "matmul_vec "), (2, "matmul "), (64, "matmul ")] {
        let plan = product(rows, &caps);
        assert!(plan.contains(kernel) && !plan.contains("q8"), "{rows} rows: {plan}");
    }
}

/// Case by case what the oracles say, by each table; where the device can run `row`, the first two tables take other kernels.
fn holds(row: &Row, make: crate::parity::MakeCase, seeds: std::ops::Range<u64>, tables: &[Table]) {
    let device = crate::device::tests::device();
    for seed in seeds {
        let mut labels = vec![];
        for table in tables {
            let outcome = crate::sweep::check(&device.with_table(*table), make, seed, false).expect("a run");
            assert!(outcome.holds(), "seed {seed} by {table:?}: {outcome:?}");
            labels.push(outcome.kernels.iter().map(crate::compose::Kernel::label).collect::<Vec<_>>());
        }
        assert!(seed > 0 || labels[0] != labels[1] || !row.fits(device.caps()), "both tables take {:?}", labels[0]);
    }
}

#[test]
fn attention_is_right_by_any_table() {
    let split = |workgroups| Table { short_keys: 0, split_workgroups: workgroups, ..USUAL };
    holds(
        &ops::attention_short::ATTENTION_SHORT,
        ops::attention_short::case,
        0..6,
        &[USUAL, split(1), split(7), split(4096), Table { short_keys: 100, ..USUAL }],
    );
}

#[test]
fn attention_of_shared_keys_is_right_by_parts_of_several_tiles() {
    let split = |workgroups| Table { split_workgroups: workgroups, ..USUAL };
    holds(&ops::attention_deep_raw::ATTENTION_DEEP_RAW, ops::attention_deep_raw::case, 0..6, &[USUAL, split(1), split(12)]);
}

#[test]
fn a_product_with_the_norm_behind_it_is_right_in_one_kernel_and_in_two() {
    let columns = |norm_columns| Table { norm_columns, ..USUAL };
    holds(&ops::matmul_vec_norm::MATMUL_VEC_NORM, ops::matmul_vec_norm::case, 0..4, &[columns(16), columns(0)]);
}
