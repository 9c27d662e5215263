//! `contracts`: writes docs/contracts.md from the declarations of the kernels.

use crate::workspace::{read, root};
use anyhow::Context as _;
use kernels::testing::kernel::compose::{Piece, Shader};
use kernels::testing::kernel::{Access, Fill, Kernel, KvUse, Needs, PEAK, Part, Scalar, Variant};
use kernels::testing::language::{self, kernels};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const PATH: &str = "docs/contracts.md";

/// The text before the kernels; `PEAK` stands for its number.
const HEAD: &str = "# Contracts of the kernels

`cargo xtask contracts` writes this file from the kernels in the families of
`crates/kernels/src/`; do not edit it.

A kernel has one or more variants with different constants or pieces. A shader is a variant with
chosen formats, state types and subgroup form. The needs of a variant are the largest needs of its
shaders. `crates/kernels/tests/contract.rs` checks them.

Every kernel computes the same as its oracle in `cpu-ref`. The bound is the largest allowed
normalised mean squared error (NMSE) of a row, for any input of the domain that its parity case
tests. No element of the row differs by more than PEAK times the root of the bound, times the RMS of
the row, unless a variant has another peak.
Tensors are f32 and row-major, unless the text with the equation says otherwise. Weights are read
in the type of the file through a piece of `shaders/quant/`, and KV states through a piece of
`shaders/kv/`. Variants fit WebGPU's default limits (256 threads, 16 KiB of workgroup memory, 8
storage buffers), except a few variants that the planner uses only if the device has more.
";

/// Writes the file, or checks it. Returns true if it is up to date.
pub fn run(check: bool) -> anyhow::Result<bool> {
    let text = render()?;
    if !check {
        std::fs::create_dir_all(root().join("docs"))?;
        std::fs::write(root().join(PATH), text).with_context(|| format!("writing {PATH}"))?;
        println!("wrote {PATH}: {} kernels, {} variants", kernels().len(), language::variants().count());
        return Ok(true);
    }
    let fresh = read(PATH).is_ok_and(|found| found == text);
    if !fresh {
        eprintln!("{PATH} is stale: run `cargo xtask contracts`");
    }
    Ok(fresh)
}

fn render() -> anyhow::Result<String> {
    let mut text = HEAD.replace("PEAK", &PEAK.to_string());
    for kernel in kernels() {
        section(kernel, &mut text).with_context(|| kernel.name)?;
    }
    Ok(text)
}

fn section(kernel: &Kernel, text: &mut String) -> anyhow::Result<()> {
    let (path, wgsl) = kernel.main();
    let head: Vec<_> = wgsl
        .lines()
        .map_while(|line| line.strip_prefix("//"))
        .take_while(|line| !line.starts_with(" Needs: "))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    anyhow::ensure!(!head.is_empty(), "{path} has no comment at its head");
    write!(text, "\n## {}\n\n```text\n{}\n```\n\n", kernel.name, head.join("\n"))?;
    // A kernel that only another kernel's cases test has no file of cases.
    let source = read(&cases_of(kernel.file)).unwrap_or_default();
    if let Some(domain) = doc(&source, "pub fn case(") {
        writeln!(text, "- Domain tested: {domain}")?;
    }
    writeln!(text, "- Bound: NMSE {:e} against `{}`", kernel.nmse, kernel.oracle.replace(' ', ""))?;
    let params = kernel.params.iter().map(|(name, scalar)| format!("`{name}: {}`", scalar_name(*scalar)));
    writeln!(text, "- Params: {}", listed(params))?;
    let bindings = kernel.bindings.iter().map(|(name, access)| format!("`{name}` {}", access_name(*access)));
    writeln!(text, "- Bindings: {}", listed(bindings))?;
    let parts = kernel.wgsl.iter().map(|part| match part {
        Part::Piece((path, _)) => format!("`shaders/{path}`"),
        Part::Slot(slot) => format!("slot {slot}"),
    });
    writeln!(text, "- Source: `{}`; {}", kernel.file.replace('\\', "/"), listed(parts))?;
    if kernel.variants.iter().all(|variant| variant.fill.is_empty()) {
        writeln!(text, "- Needs: {}", needs(kernel.only()))?;
        return Ok(());
    }
    writeln!(text, "- Variants:")?;
    for variant in kernel.variants {
        let fills = variant.fill.iter().map(|(slot, fill)| match fill {
            Fill::Vary(constants) => listed(constants.iter().map(|(name, value)| format!("`{name} = {value}`"))),
            Fill::Choose(pieces) => {
                format!("{slot} from {}", listed(pieces.iter().map(|(path, _)| format!("`{path}`"))))
            }
        });
        let peak = if variant.peak == PEAK { String::new() } else { format!("; peak {}", variant.peak) };
        writeln!(text, "  - `{}`: {}; {}{peak}", variant.name, listed(fills), needs(variant))?;
    }
    Ok(())
}

/// The file of cases beside a file that declares kernels.
fn cases_of(declared: &str) -> String {
    format!("{}_case.rs", declared.replace('\\', "/").trim_end_matches(".rs"))
}

fn listed(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// The largest resource needs of the variant's shaders, and the list of these shaders.
fn needs(variant: &'static Variant) -> String {
    let (mut formats, mut kv, mut subgroups) = (BTreeSet::new(), BTreeSet::new(), false);
    for shader in Shader::all(variant, &[0, 8, 32]) {
        subgroups |= shader.subgroups;
        for piece in shader.pieces.iter().flatten() {
            match piece {
                Piece::Weight(ty) => formats.insert(ty.name()),
                Piece::Kv(ty) => kv.insert(format!("{ty:?}")),
            };
        }
    }
    let (Needs { threads, workgroup_bytes }, buffers) = (variant.needs, variant.kernel.bindings.len());
    let mut text = format!("{threads} threads, {workgroup_bytes} bytes of workgroup memory, {buffers} storage buffers");
    match formats.len() {
        0 => {}
        n @ 1..=4 => {
            text.push_str(&format!("; {n} weight formats ({})", listed(formats.into_iter().map(str::to_string))))
        }
        n => text.push_str(&format!("; {n} weight formats")),
    }
    if !kv.is_empty() {
        text.push_str(&format!("; KV states of {}", listed(kv.into_iter())));
    }
    text.push_str(if subgroups { "; portable form and subgroup form" } else { "; portable form" });
    text
}

/// The doc comment of an item, joined into one line.
fn doc(source: &str, item: &str) -> Option<String> {
    let above: Vec<_> = source[..source.find(&format!("\n{item}"))? + 1].lines().collect();
    let mut lines: Vec<_> = above.iter().rev().map_while(|line| line.strip_prefix("/// ")).collect();
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join(" "))
}

fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::U32 => "u32",
        Scalar::F32 => "f32",
    }
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "written",
        Access::Weight(how) => how.words(),
        Access::Kv(KvUse::Read) => "KV state, read",
        Access::Kv(KvUse::Write) => "KV state, written",
        Access::Kv(KvUse::Both) => "KV state, read and written",
        Access::State => "state, written in place",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests that docs/from-the-seeds.md names, each as "`name` (file)".
    fn named(page: &str) -> Vec<(&str, &str)> {
        let parts: Vec<&str> = page.split("` (").collect();
        let pairs = parts.windows(2).filter_map(|two| Some((two[0].rsplit_once('`')?.1, two[1].split_once(')')?.0)));
        pairs.filter(|(_, file)| file.ends_with(".rs")).collect()
    }

    #[test]
    fn every_test_that_holds_a_promise_is_there() {
        let page = read("docs/from-the-seeds.md").expect("the page");
        let tests = named(&page);
        assert!(tests.len() > 80, "{} tests", tests.len());
        for (name, file) in tests {
            let source = read(file).unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert!(source.contains(&format!("fn {name}(")), "{file} has no test {name}");
        }
    }
}
