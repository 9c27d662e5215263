//! Every rule reports files that break it, and accepts files that keep it.

use super::pieces::{names, pieces};
use super::*;

fn tree(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(path, text)| ((*path).to_string(), Some((*text).to_string()))).collect()
}

fn findings(rule: impl Fn(&Files, &mut Vec<String>), files: &[(&str, &str)]) -> usize {
    let mut found = vec![];
    rule(&tree(files), &mut found);
    found.len()
}

fn in_file(rule: fn(&str, &str, &mut Vec<String>), path: &str, text: &str) -> usize {
    let mut found = vec![];
    rule(path, text, &mut found);
    found.len()
}

#[test]
fn heads_and_lengths_of_files() {
    assert_eq!(in_file(head_and_length, "a.rs", "//! A.\n"), 0);
    assert_eq!(in_file(head_and_length, "a.rs", "use b;\n"), 1);
    assert_eq!(in_file(head_and_length, "a.wgsl", "fn f() {}\n"), 1);
    assert_eq!(in_file(head_and_length, "a.rs", &format!("//! A.\n{}", "\n".repeat(499))), 0);
    assert_eq!(in_file(head_and_length, "a.rs", &format!("//! A.\n{}", "\n".repeat(500))), 1);
    assert_eq!(in_file(head_and_length, "a.wgsl", &format!("// A.\n{}", "\n".repeat(240))), 1);
}

#[test]
fn lengths_of_functions() {
    let function = |lines: usize| format!("    pub fn f() {{\n{}    }}\n", "        g();\n".repeat(lines - 2));
    assert_eq!(in_file(functions, "a.rs", &function(120)), 0);
    assert_eq!(in_file(functions, "a.rs", &function(121)), 1);
}

#[test]
fn words_that_only_some_files_say() {
    let asks = "#[cfg(not(target_arch = \"wasm32\"))]";
    let every: Vec<(&str, String)> = ONLY.iter().map(|(word, path, _)| (*path, word.to_string())).collect();
    let mut files: Vec<(&str, &str)> = every.iter().map(|(path, text)| (*path, text.as_str())).collect();
    assert_eq!(findings(only, &files), 0);
    files.push(("crates/model/tests/a.rs", asks));
    files.push(("crates/model/src/a.rs", "fn f() {}\n#[cfg(test)]\nfn g() { pollster::block_on(h()) }"));
    assert_eq!(findings(only, &files), 0);
    files.push(("crates/model/src/b.rs", asks));
    assert_eq!(findings(only, &files), 1);
    files.retain(|(path, _)| *path != "crates/model/src/gpu.rs");
    files.push(("crates/model/src/gpu.rs", "fn f() {}"));
    assert_eq!(findings(only, &files), 2, "a file that is no longer an exception");
}

#[test]
fn sums_are_64_bits_wide_before_they_are_computed() {
    let in_kernels = |text| in_file(wrapping, "crates/kernels/src/a.rs", text);
    assert_eq!(in_kernels("let at = (table.len() + start * to) as u64;"), 1);
    assert_eq!(in_kernels("f((positions.len() * row) as u64, (a + b) as u64)"), 2);
    assert_eq!(in_kernels("let at = start as u64 * to as u64 + f(a * b) as u64 + (start) as u64;"), 0);
    assert_eq!(in_kernels("#[cfg(test)]\nlet at = (a * b) as u64;"), 0);
    assert_eq!(in_file(wrapping, "xtask/src/a.rs", "let at = (a * b) as u64;"), 0);
}

#[test]
fn words_that_a_crate_never_says() {
    assert_eq!(in_file(words, "crates/model/src/a.rs", "use wgpu::Device;\n"), 1);
    assert_eq!(in_file(words, "crates/model/src/a.rs", "// what wgpu does\nlet not_wgpu = 1;\n"), 0);
    assert_eq!(in_file(words, "crates/kernels/src/a.rs", "std::fs::read(path)\n"), 1);
    assert_eq!(in_file(words, "crates/gguf/src/a.rs", "std::fs::read(path)\n"), 0);
    assert_eq!(in_file(words, "a.rs", concat!("// TO", "DO\n")), 1);
    assert_eq!(in_file(words, "a.toml", concat!("path = \"/ro", "ot/x\"\n")), 1);
}

#[test]
fn unsafe_code_without_a_reason() {
    let code = ("crates/gguf/src/map.rs", "unsafe { map() }\n");
    assert_eq!(findings(unsafe_code, &[code, ("crates/gguf/src/lib.rs", "//! The container.\n")]), 1);
    assert_eq!(findings(unsafe_code, &[code, ("crates/gguf/src/lib.rs", "//! Unsafe code maps files.\n")]), 0);
}

#[test]
fn minutes_of_the_run_of_everything_and_its_tests() {
    let readme = ("README.md", "cargo test --workspace     # the tests\n");
    let count = |run: &str| findings(ci::ci, &[readme, (".ci/run", run)]);
    let tests = "part 'the tests' 12\nstep cargo test --workspace\n";
    assert_eq!(count(&format!("part build 33\n{tests}")), 0);
    assert_eq!(count(&format!("part build 34\n{tests}")), 1, "46 minutes");
    assert_eq!(count(&format!("part build 30\n{tests}")), 1, "what is not needed stays with a part");
    assert_eq!(count(&format!("part build 33\npart more\n{tests}")), 1);
    assert_eq!(count("part 'the tests' 45\nstep cargo test --workspace -- --skip slow\n"), 1);
    assert_eq!(findings(ci::ci, &[("README.md", "cargo test\n"), (".ci/run", &format!("part build 33\n{tests}"))]), 1);
}

#[test]
fn cards_outside_the_table_and_constants_without_one() {
    let count = |path: &str, text: &str| findings(cards::cards, &[(path, text)]);
    let measured = "// 5 us (NVIDIA H200).\n";
    assert_eq!(count("crates/kernels/src/caps/table.rs", measured), 0);
    assert_eq!(count("crates/kernels/tests/run.rs", measured), 0);
    assert_eq!(count("crates/model/src/plans.rs", measured), 1);
    let constant =
        |comment: &str| count("crates/kernels/src/caps/table/a.rs", &format!("{comment}pub const A: u32 = 1;\n"));
    assert_eq!(constant("/// A.\n///\n/// Unit: rows. Card: NVIDIA H100.\n"), 0);
    assert_eq!(constant("/// Unit: rows. Card: NVIDIA H100.\npub type B = u32;\n\n    /// A. Unit: rows.\n    "), 1);
}

#[test]
fn dependencies_to_the_right() {
    let manifests = |kernels: &'static str| {
        let mut all = ORDER
            .map(|krate| (format!("crates/{krate}/Cargo.toml"), "[dependencies]\ngguf.workspace = true\n"))
            .to_vec();
        all[0].1 = "[dependencies]\nhalf.workspace = true\n";
        all[2].1 = kernels;
        all
    };
    let count = |kernels| {
        let all = manifests(kernels);
        findings(dependencies, &all.iter().map(|(path, text)| (path.as_str(), *text)).collect::<Vec<_>>())
    };
    assert_eq!(count("[dependencies]\nwgpu.workspace = true\ncpu-ref = { path = \"../cpu-ref\" }\n"), 0);
    assert_eq!(count("[dev-dependencies]\nmodel.workspace = true\n"), 1);
    assert_eq!(count("[dependencies]\nanyhow = \"1\"\n"), 1);
    assert_eq!(count("[features]\nmodel = []\n"), 0);
}

#[test]
fn operations_without_one_of_their_files() {
    let all = [
        ("shaders/elementwise/add.wgsl", "// a"),
        ("shaders/elementwise/bench_read.wgsl", "// a"),
        ("shaders/matmul/bench_products.wgsl", "// a"),
        ("crates/kernels/src/elementwise/add.rs", "//! A.\n\nkernel! {\n    cpu: cpu_ref::add,\n}\n"),
        ("crates/cpu-ref/src/elementwise/add.rs", "//! A.\n"),
    ];
    assert_eq!(findings(stems, &all), 0);
    for missing in 0..all.len() {
        let rest: Vec<_> = (0..all.len()).filter(|n| *n != missing).map(|n| all[n]).collect();
        assert_eq!(findings(stems, &rest), 1, "without {}", all[missing].0);
    }
}

#[test]
fn shaders_outside_the_folders_of_families() {
    let lone = |path| findings(|files, found| drop(shaders(files, found)), &[(path, "// a")]);
    for path in
        ["shaders/norm/a.wgsl", "shaders/norm/pieces/a.wgsl", "shaders/shared/a.wgsl", "shaders/quant/units/a.wgsl"]
    {
        assert_eq!(lone(path), 0, "{path}");
    }
    for path in ["shaders/a.wgsl", "shaders/other/a.wgsl", "shaders/norm/more/a.wgsl"] {
        assert_eq!(lone(path), 1, "{path}");
    }
    let twice = [("shaders/norm/a.wgsl", "// a"), ("shaders/matmul/a.wgsl", "// a")];
    assert_eq!(findings(|files, found| drop(shaders(files, found)), &twice), 1);
}

#[test]
fn pieces_of_a_later_family() {
    let kernel = |piece: &str| format!("//! A.\n\nkernel! {{\n    wgsl: [\"norm/a.wgsl\", \"{piece}\"],\n}}\n");
    let count = |piece: &str| findings(pieces, &[("crates/kernels/src/norm/a.rs", &kernel(piece))]);
    assert_eq!((count("norm/pieces/b.wgsl"), count("shared/b.wgsl"), count("matmul/pieces/b.wgsl")), (0, 0, 1));
}

#[test]
fn markdown_at_the_root() {
    assert_eq!(findings(markdown, &[("README.md", ""), ("docs/contracts.md", "")]), 0);
    assert_eq!(findings(markdown, &[("PROGRESS.md", "")]), 1);
}

#[test]
fn names_that_a_piece_needs_and_gives() {
    let piece = "// A.
struct Place { base: u32, of: Kind }
const SIZE = 2.5e-10;
var<workgroup> sums: array<vec4<f32>, WG / 32u>; // not_code
@compute @workgroup_size(WG)
fn total(@builtin(workgroup_id) id: vec3<u32>, p: Place) -> f32 {
    let x = p.base + params.first;
    for (var i = 0u; i < id.x; i += 1u) {
        sums[i] = vec4<f32>(scaled(SIZE));
    }
    return f32(x) * params.eps;
}
fn after(id: u32) -> u32 { return id + x; }
";
    let found = names(piece);
    assert_eq!(found.needs, ["Kind", "WG", "params.first", "scaled", "params.eps", "x"]);
    assert_eq!(found.gives, ["Place", "SIZE", "sums", "total", "after"]);
}

#[test]
fn pieces_that_do_not_say_what_they_need_and_give() {
    let user = ("shaders/a.wgsl", "// A.\nfn a() -> u32 { return b(); }\n");
    let rest = "fn b() -> u32 { return c + WG; }\nconst c = 1u;\n";
    let count = |line: &str| findings(pieces, &[user, ("shaders/shared/b.wgsl", &format!("// B.\n{line}\n{rest}"))]);
    assert_eq!(count("// Needs: WG. Gives: b."), 0);
    for wrong in [
        "",
        "// Needs: nothing. Gives: b.",
        "// Needs: WG, c. Gives: b.",
        "// Needs: WG. Gives: nothing.",
        "// Needs: WG. Gives: b, c.",
    ] {
        assert_eq!(count(wrong), 1, "{wrong}");
    }
}

/// The commands of the model card, from the folder that the first of them enters.
#[test]
fn the_recipe_of_the_default_model_names_files_that_are_there() {
    let card = crate::workspace::read("crates/cli/assets/MODEL_CARD.md").expect("a card");
    let recipe = card.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a recipe");
    let folder = recipe.strip_prefix("cd ").and_then(|rest| rest.lines().next()).expect("a folder");
    let folder = crate::workspace::root().join(folder);
    let named = |word: &&str| [".py", ".sh", ".json", ".gguf"].iter().any(|end| word.ends_with(end));
    let commands = recipe.lines().map(|line| line.split('#').next().unwrap_or_default());
    let files: Vec<&str> = commands.flat_map(str::split_whitespace).filter(named).collect();
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        assert!(folder.join(file).is_file(), "the recipe names {file}");
    }
}
