//! The contract between every row and its WGSL, without a GPU: each kernel that a row can become is parsed and compared.

use kernels::compose::Kernel;
use kernels::ops::ROWS;
use kernels::row::{Row, Scalar};
use std::collections::HashSet;
use std::path::Path;
use wgpu::naga::valid::{Capabilities, ValidationFlags, Validator};
use wgpu::naga::{AddressSpace, Module, ScalarKind, StorageAccess, TypeInner, front::wgsl};

fn kernels() -> impl Iterator<Item = Kernel> {
    ROWS.iter().flat_map(|row| Kernel::variants(row, &[0, 8, 32]))
}

fn parse(kernel: &Kernel) -> Module {
    let source = kernel.source();
    wgsl::parse_str(&source).unwrap_or_else(|e| panic!("{}: {}", kernel.label(), e.emit_to_string(&source)))
}

#[test]
fn every_kernel_validates_with_no_capability_its_row_does_not_name() {
    for kernel in kernels() {
        let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
        let cooperative = kernel.row.cooperative();
        capabilities.set(Capabilities::SUBGROUP, kernel.subgroups || cooperative);
        let cooperating = Capabilities::COOPERATIVE_MATRIX | Capabilities::SHADER_FLOAT16 | Capabilities::SUBGROUP_BARRIER;
        capabilities.set(cooperating, cooperative);
        let checked = Validator::new(ValidationFlags::all(), capabilities).validate(&parse(&kernel));
        checked.unwrap_or_else(|e| panic!("{}: {}", kernel.label(), e.emit_to_string(&kernel.source())));
    }
}

#[test]
fn portable_kernels_have_no_enable_and_no_subgroup_operation() {
    for kernel in kernels().filter(|kernel| !kernel.subgroups && !kernel.row.cooperative()) {
        let source = kernel.source();
        let code = source.lines().map(|line| line.split("//").next().unwrap_or_default());
        for (n, line) in (1..).zip(code) {
            for word in ["enable", "requires", "subgroup", "quad_swap"] {
                assert!(
                    !line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w.starts_with(word)),
                    "{} line {n}: {line}",
                    kernel.label()
                );
            }
        }
    }
}

#[test]
fn params_and_bindings_are_those_of_the_row() {
    for kernel in kernels() {
        let module = parse(&kernel);
        let label = kernel.label();
        let mut bound: Vec<_> =
            module.global_variables.iter().filter_map(|(_, var)| var.binding.map(|at| (at.group, at.binding, var))).collect();
        bound.sort_by_key(|(group, binding, _)| (*group, *binding));
        assert_eq!(bound.len(), kernel.row.bindings.len() + 1, "{label}: number of bindings");
        for (n, (group, binding, var)) in (0..).zip(&bound) {
            assert_eq!((*group, *binding), (0, n), "{label}: bindings are 0, 1, 2, .. of group 0");
            let name = var.name.as_deref().unwrap_or_default();
            if n == 0 {
                assert_eq!((name, var.space), ("params", AddressSpace::Uniform), "{label}: binding 0");
                check_params(&module, &module.types[var.ty].inner, kernel.row, &label);
                continue;
            }
            let (declared, access) = kernel.row.bindings[n as usize - 1];
            let mut expected = StorageAccess::LOAD;
            expected.set(StorageAccess::STORE, access.writes());
            assert_eq!((name, var.space), (declared, AddressSpace::Storage { access: expected }), "{label}: binding {n}");
        }
    }
}

fn check_params(module: &Module, params: &TypeInner, row: &Row, label: &str) {
    let TypeInner::Struct { members, .. } = params else { panic!("{label}: params is no struct") };
    let found: Vec<_> = members.iter().map(|m| (m.name.clone().unwrap_or_default(), m.offset as usize)).collect();
    let declared = row.params.iter().map(|(name, _)| ((*name).to_string(), row.param_offset(name).expect("its own field")));
    assert_eq!(found, declared.collect::<Vec<_>>(), "{label}: names and offsets of params");
    for (member, (name, scalar)) in members.iter().zip(row.params) {
        let kind = match scalar {
            Scalar::U32 => ScalarKind::Uint,
            Scalar::F32 => ScalarKind::Float,
        };
        let TypeInner::Scalar(found) = module.types[member.ty].inner else { panic!("{label}: params.{name} is no scalar") };
        assert_eq!((found.kind, found.width), (kind, 4), "{label}: params.{name}");
    }
}

#[test]
fn constants_take_the_place_of_the_uniform_but_for_what_binding_a_plan_decides() {
    for row in ROWS {
        let kernel = Kernel::variants(row, &[0]).swap_remove(0);
        let late = row.bound_late().map(|(field, _)| field);
        let one = |scalar: &Scalar| if *scalar == Scalar::U32 { 1 } else { 1.0_f32.to_bits() };
        let given = row.params.iter().map(|(field, scalar)| (late != Some(*field)).then(|| one(scalar))).collect();
        let module = parse(&Kernel { given, ..kernel });
        let uniforms = module.global_variables.iter().filter(|(_, var)| var.space == AddressSpace::Uniform).count();
        assert_eq!(uniforms, usize::from(late.is_some()), "{}: uniforms", row.name);
    }
}

#[test]
fn every_kernel_has_one_entry_with_the_operations_name_within_webgpus_limits() {
    for kernel in kernels() {
        let (module, label) = (parse(&kernel), kernel.label());
        let entries: Vec<_> = module.entry_points.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(entries, [kernel.row.entry], "{label}");
        let threads: u32 = module.entry_points[0].workgroup_size.iter().product();
        assert!(threads <= kernel.row.threads(), "{label}: {threads} threads");
        let mut layouter = wgpu::naga::proc::Layouter::default();
        layouter.update(module.to_ctx()).expect("sized types");
        let shared = module.global_variables.iter().filter(|(_, var)| var.space == AddressSpace::WorkGroup);
        let bytes: u32 = shared.map(|(_, var)| layouter[var.ty].to_stride()).sum();
        let most = kernel.row.workgroup_bytes();
        assert!(bytes <= most, "{label}: {bytes} bytes of workgroup memory");
        assert!(kernel.row.bindings.len() <= kernel.row.storage_buffers(), "{label}: {} storage buffers", kernel.row.bindings.len());
    }
}

#[test]
fn entries_carry_the_name_of_their_file_and_rows_that_of_their_entry() {
    let mut seen = HashSet::new();
    for row in ROWS {
        assert!(seen.insert(row.name), "two rows are named {}", row.name);
        let stem = Path::new(row.file).file_stem().and_then(|s| s.to_str());
        assert_eq!(row.wgsl[0].0.strip_suffix(".wgsl"), stem, "{} starts with the file of its stem", row.name);
        assert!(row.name.starts_with(row.entry), "row {} enters at {}", row.name, row.entry);
        assert!(row.nmse > 0.0 && row.nmse <= 1e-4, "{} has the bound {}", row.name, row.nmse);
    }
}

/// A grid past 65,535 workgroups is laid out in two dimensions, so a kernel that numbers its workgroups needs the helper.
#[test]
fn workgroup_numbers_go_through_the_grid_helper() {
    for row in ROWS {
        let helper = row.wgsl.iter().any(|(path, _)| *path == "shared/grid.wgsl");
        let called = row.wgsl[0].1.contains("workgroup_number(id, extents)");
        assert_eq!(helper, called, "{} includes the helper and calls it", row.name);
        assert!(called || row.wgsl[0].1.contains("id.y"), "{} numbers workgroups in one dimension", row.name);
    }
}

#[test]
fn every_declared_row_is_listed() {
    let mut declared = HashSet::new();
    let mut pending = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        for declaration in text.split("\nkernel! {").skip(1) {
            let name = declaration.split('"').nth(1).expect("a row's name");
            assert!(declared.insert(name.to_string()), "{name} is declared twice");
        }
    }
    let listed: HashSet<String> = ROWS.iter().map(|row| row.name.to_string()).collect();
    assert_eq!(listed, declared);
}
