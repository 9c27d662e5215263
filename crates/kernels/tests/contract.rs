//! The contract between every kernel and its WGSL, without a GPU: every shader that a variant can
//! become is parsed and compared with the declaration.

use kernels::testing::kernel::compose::Shader;
use kernels::testing::kernel::{Kernel, Needs, PEAK, Part, Scalar};
use kernels::testing::language::{self, kernels};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use wgpu::naga::valid::{Capabilities, ValidationFlags, Validator};
use wgpu::naga::{AddressSpace, Module, ScalarKind, StorageAccess, TypeInner, front::wgsl};

fn shaders() -> impl Iterator<Item = Shader> {
    language::variants().flat_map(|variant| Shader::all(variant, &[0, 8, 32]))
}

fn parse(shader: &Shader) -> Module {
    let source = shader.source();
    wgsl::parse_str(&source).unwrap_or_else(|e| panic!("{}: {}", shader.label(), e.emit_to_string(&source)))
}

/// Each shader is parsed once: parsing is most of the time.
#[test]
fn every_shader_is_valid_and_takes_what_its_kernel_declares() {
    let mut most = HashMap::new();
    for shader in shaders() {
        let module = parse(&shader);
        names_its_capabilities(&shader, &module);
        has_the_params_and_bindings_of_its_kernel(&shader, &module);
        has_one_entry_with_the_name_of_its_operation(&shader, &module);
        count_needs(&shader, &module, &mut most);
    }
    // The needs that the planner checks are exactly those that naga finds.
    for variant in language::variants() {
        assert_eq!(variant.needs, most[variant.name], "{} (right: what its shaders take)", variant.name);
    }
}

/// It is valid with no capability that its kernel does not name.
fn names_its_capabilities(shader: &Shader, module: &Module) {
    let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    let cooperative = shader.variant.kernel.cooperative();
    capabilities.set(Capabilities::SUBGROUP, shader.subgroups || cooperative);
    let cooperating = Capabilities::COOPERATIVE_MATRIX | Capabilities::SHADER_FLOAT16 | Capabilities::SUBGROUP_BARRIER;
    capabilities.set(cooperating, cooperative);
    let checked = Validator::new(ValidationFlags::all(), capabilities).validate(module);
    checked.unwrap_or_else(|e| panic!("{}: {}", shader.label(), e.emit_to_string(&shader.source())));
}

#[test]
fn portable_shaders_have_no_enable_and_no_subgroup_operation() {
    for shader in shaders().filter(|shader| !shader.subgroups && !shader.variant.kernel.cooperative()) {
        let source = shader.source();
        let code = source.lines().map(|line| line.split("//").next().unwrap_or_default());
        for (n, line) in (1..).zip(code) {
            for word in ["enable", "requires", "subgroup", "quad_swap"] {
                assert!(
                    !line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w.starts_with(word)),
                    "{} line {n}: {line}",
                    shader.label()
                );
            }
        }
    }
}

fn has_the_params_and_bindings_of_its_kernel(shader: &Shader, module: &Module) {
    let label = shader.label();
    let mut bound: Vec<_> = module
        .global_variables
        .iter()
        .filter_map(|(_, var)| var.binding.map(|at| (at.group, at.binding, var)))
        .collect();
    bound.sort_by_key(|(group, binding, _)| (*group, *binding));
    assert_eq!(bound.len(), shader.variant.kernel.bindings.len() + 1, "{label}: number of bindings");
    for (n, (group, binding, var)) in (0..).zip(&bound) {
        assert_eq!((*group, *binding), (0, n), "{label}: bindings are 0, 1, 2, .. of group 0");
        let name = var.name.as_deref().unwrap_or_default();
        if n == 0 {
            assert_eq!((name, var.space), ("params", AddressSpace::Uniform), "{label}: binding 0");
            check_params(module, &module.types[var.ty].inner, shader.variant.kernel, &label);
            continue;
        }
        let (declared, access) = shader.variant.kernel.bindings[n as usize - 1];
        let mut expected = StorageAccess::LOAD;
        expected.set(StorageAccess::STORE, access.writes());
        assert_eq!((name, var.space), (declared, AddressSpace::Storage { access: expected }), "{label}: binding {n}");
    }
}

fn check_params(module: &Module, params: &TypeInner, kernel: &Kernel, label: &str) {
    let TypeInner::Struct { members, .. } = params else { panic!("{label}: params is no struct") };
    let found: Vec<_> = members.iter().map(|m| (m.name.clone().unwrap_or_default(), m.offset as usize)).collect();
    let declared =
        kernel.params.iter().map(|(name, _)| ((*name).to_string(), kernel.param_offset(name).expect("its own field")));
    assert_eq!(found, declared.collect::<Vec<_>>(), "{label}: names and offsets of params");
    for (member, (name, scalar)) in members.iter().zip(kernel.params) {
        let kind = match scalar {
            Scalar::U32 => ScalarKind::Uint,
            Scalar::F32 => ScalarKind::Float,
        };
        let TypeInner::Scalar(found) = module.types[member.ty].inner else {
            panic!("{label}: params.{name} is no scalar")
        };
        assert_eq!((found.kind, found.width), (kind, 4), "{label}: params.{name}");
    }
}

#[test]
fn constants_take_the_place_of_the_uniform_but_for_what_binding_a_plan_decides() {
    for kernel in kernels() {
        let shader = Shader::all(kernel.variants[0], &[0]).swap_remove(0);
        let late = kernel.bound_late().map(|(field, _)| field);
        let one = |scalar: &Scalar| if *scalar == Scalar::U32 { 1 } else { 1.0_f32.to_bits() };
        let given = kernel.params.iter().map(|(field, scalar)| (late != Some(*field)).then(|| one(scalar))).collect();
        let module = parse(&Shader { given, ..shader });
        let uniforms = module.global_variables.iter().filter(|(_, var)| var.space == AddressSpace::Uniform).count();
        assert_eq!(uniforms, usize::from(late.is_some()), "{}: uniforms", kernel.name);
    }
}

/// In plans of many rows only the params that a kernel names are constants.
#[test]
fn shaders_of_many_rows_read_all_params_but_the_constants_of_their_kernel() {
    for shader in shaders().filter(|shader| !shader.variant.kernel.constants.is_empty()) {
        let (kernel, label) = (shader.variant.kernel, shader.label());
        let given = kernel.params.iter().map(|(field, _)| kernel.constants.contains(field).then_some(1)).collect();
        let module = parse(&Shader { given, ..shader });
        let uniforms: Vec<_> =
            module.global_variables.iter().filter(|(_, var)| var.space == AddressSpace::Uniform).collect();
        assert_eq!(uniforms.len(), 1, "{label}: uniforms");
        assert_eq!(uniforms[0].1.name.as_deref(), Some("read_params"), "{label}");
    }
}

fn has_one_entry_with_the_name_of_its_operation(shader: &Shader, module: &Module) {
    let entries: Vec<_> = module.entry_points.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(entries, [shader.variant.kernel.entry], "{}", shader.label());
}

/// Keeps the most that a shader of each variant takes.
fn count_needs(shader: &Shader, module: &Module, most: &mut HashMap<&str, Needs>) {
    let mut layouter = wgpu::naga::proc::Layouter::default();
    layouter.update(module.to_ctx()).expect("sized types");
    let of = |space: fn(AddressSpace) -> bool| module.global_variables.iter().filter(move |(_, var)| space(var.space));
    let bytes: u32 = of(|space| space == AddressSpace::WorkGroup).map(|(_, var)| layouter[var.ty].to_stride()).sum();
    let found = most.entry(shader.variant.name).or_insert(Needs { threads: 0, workgroup_bytes: 0 });
    found.threads = found.threads.max(module.entry_points[0].workgroup_size.iter().product());
    found.workgroup_bytes = found.workgroup_bytes.max(bytes);
    let buffers = of(|space| matches!(space, AddressSpace::Storage { .. })).count();
    assert_eq!(buffers, shader.variant.kernel.bindings.len(), "{}: storage buffers", shader.label());
}

/// The words of a name without the numbers after them: a variant's numbers describe its own shape.
fn words(name: &str) -> Vec<&str> {
    name.split('_').map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn entries_carry_the_name_of_their_file_and_variants_that_of_their_kernel_but_for_numbers() {
    let (mut names, mut variants) = (HashSet::new(), HashSet::new());
    for kernel in kernels() {
        assert!(names.insert(kernel.name), "two kernels are named {}", kernel.name);
        let stem = Path::new(kernel.file).file_stem().and_then(|s| s.to_str());
        let main = Path::new(kernel.main().0).file_stem().and_then(|s| s.to_str());
        assert_eq!(main, stem, "{} starts with the file of its stem", kernel.name);
        assert!(kernel.name.starts_with(kernel.entry), "kernel {} enters at {}", kernel.name, kernel.entry);
        assert!(kernel.nmse > 0.0 && kernel.nmse <= 1e-4, "{} has the bound {}", kernel.name, kernel.nmse);
        for variant in kernel.variants {
            assert!(variants.insert(variant.name), "two variants are named {}", variant.name);
            assert!(
                words(variant.name).starts_with(&words(kernel.name)),
                "variant {} is one of {}",
                variant.name,
                kernel.name
            );
            assert!(std::ptr::eq(variant.kernel, kernel), "{} is a variant of {}", variant.name, variant.kernel.name);
        }
    }
}

/// The error of one element is bounded for all kernels alike. A variant that needs more has its own
/// number, so that the others keep theirs.
#[test]
fn one_variant_lets_an_element_differ_by_more_than_the_others() {
    const { assert!(PEAK <= 16.0, "a larger number for one variant stands beside the variant") };
    let wider: Vec<_> = language::variants()
        .filter(|variant| variant.peak != PEAK)
        .map(|variant| (variant.name, variant.peak))
        .collect();
    assert_eq!(wider, [("attention_flash_512", 20.0)]);
}

/// Pieces for a slot that does not exist would be left out.
#[test]
fn variants_fill_the_slots_of_their_kernel_and_no_others() {
    for variant in language::variants() {
        let slots =
            variant.kernel.wgsl.iter().filter_map(|part| if let Part::Slot(slot) = part { Some(*slot) } else { None });
        let filled = variant.fill.iter().map(|(slot, _)| *slot);
        assert_eq!(filled.collect::<HashSet<_>>(), slots.collect::<HashSet<_>>(), "{}", variant.name);
    }
}

/// A grid of more than 65,535 workgroups has two dimensions, so a kernel that numbers its
/// workgroups needs the helper.
#[test]
fn workgroup_numbers_go_through_the_grid_helper() {
    for variant in language::variants() {
        let (helper, text) = (variant.includes("shared/grid.wgsl"), variant.kernel.main().1);
        let called = text.contains("workgroup_number(id, extents)");
        assert_eq!(helper, called, "{} includes the helper and calls it", variant.name);
        assert!(called || text.contains("id.y"), "{} numbers workgroups in one dimension", variant.name);
    }
}

#[test]
fn every_declared_kernel_is_listed() {
    let mut declared = HashSet::new();
    let mut pending = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        for declaration in text.split("\nkernel! {").skip(1) {
            let name = declaration.split('"').nth(1).expect("a kernel's name");
            assert!(declared.insert(name.to_string()), "{name} is declared twice");
        }
    }
    let listed: HashSet<String> = kernels().iter().map(|kernel| kernel.name.to_string()).collect();
    assert_eq!(listed, declared);
}
