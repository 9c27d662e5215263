//! `contracts`: docs/contracts.md, written from the rows.

use crate::{read, root, shaders};
use anyhow::Context as _;
use kernels::compose::{Kernel, Piece};
use kernels::ops::ROWS;
use kernels::row::{Access, Row, Scalar};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const PATH: &str = "docs/contracts.md";

const HEAD: &str = "# Contracts of the kernels

Written by `cargo xtask contracts` from the rows in `crates/kernels/src/ops/`; do not edit.

Every row computes what its oracle in `cpu-ref` computes, to the bound of the normalised mean squared error given here,
on any input of the domain that its parity case draws from. Tensors are f32 and row-major unless the equation's lines say
otherwise. Weights are read in the type of their file through a piece of `shaders/quant/`, KV states through one of
`shaders/kv/`. Rows keep WebGPU's default limits (256 threads, 16 KiB of workgroup memory, 8 storage buffers) but for the few that the planner
fuses to only where a device has more.
";

/// Writes or checks the file; whether it is fresh.
pub fn run(check: bool) -> anyhow::Result<bool> {
    let text = render()?;
    if !check {
        std::fs::create_dir_all(root().join("docs"))?;
        std::fs::write(root().join(PATH), text).with_context(|| format!("writing {PATH}"))?;
        println!("wrote {PATH}: {} rows", ROWS.len());
        return Ok(true);
    }
    let fresh = read(PATH).is_ok_and(|found| found == text);
    if !fresh {
        eprintln!("{PATH} is stale: run `cargo xtask contracts`");
    }
    Ok(fresh)
}

fn render() -> anyhow::Result<String> {
    let mut text = HEAD.to_string();
    for row in ROWS {
        section(row, &mut text).with_context(|| row.name)?;
    }
    Ok(text)
}

fn section(row: &'static Row, text: &mut String) -> anyhow::Result<()> {
    let (path, wgsl) = row.wgsl[0];
    let head: Vec<_> = wgsl.lines().map_while(|line| line.strip_prefix("//")).map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    anyhow::ensure!(!head.is_empty(), "{path} has no comment at its head");
    write!(text, "\n## {}\n\n```text\n{}\n```\n\n", row.name, head.join("\n"))?;
    let source = read(row.file)?;
    if let Some(domain) = doc(&source, "pub fn case(") {
        writeln!(text, "- Domain tested: {domain}")?;
    }
    writeln!(text, "- Bound: NMSE {:e} against `{}`", row.nmse, row.oracle.replace(' ', ""))?;
    let params = row.params.iter().map(|(name, scalar)| format!("`{name}: {}`", scalar_name(*scalar)));
    writeln!(text, "- Params: {}", params.collect::<Vec<_>>().join(", "))?;
    let bindings = row.bindings.iter().map(|(name, access)| format!("`{name}` {}", access_name(*access)));
    writeln!(text, "- Bindings: {}", bindings.collect::<Vec<_>>().join(", "))?;
    writeln!(text, "- Limits: {}", limits(row)?)?;
    let files: Vec<_> = row.wgsl.iter().map(|(path, _)| format!("`shaders/{path}`")).collect();
    writeln!(text, "- Source: `{}`; {}", row.file.replace('\\', "/"), files.join(", "))?;
    Ok(())
}

/// What the row's kernels take at most, and which variants there are.
fn limits(row: &'static Row) -> anyhow::Result<String> {
    let (mut threads, mut bytes, mut buffers) = (0, 0, 0);
    let (mut formats, mut kv, mut subgroups) = (BTreeSet::new(), BTreeSet::new(), false);
    for kernel in Kernel::variants(row, &[0, 8, 32]) {
        let (module, _) = shaders::validate(&kernel.source(), &kernel).map_err(anyhow::Error::msg)?;
        let used = shaders::measure(&module).map_err(anyhow::Error::msg)?;
        (threads, bytes, buffers) = (threads.max(used.threads), bytes.max(used.workgroup_bytes), buffers.max(used.storage_buffers));
        subgroups |= kernel.subgroups;
        for piece in kernel.pieces.iter().flatten() {
            match piece {
                Piece::Format(ty) | Piece::Units(ty) | Piece::Groups(ty) => formats.insert(ty.name()),
                Piece::Kv(ty) => kv.insert(format!("{ty:?}")),
            };
        }
    }
    let mut text = format!("{threads} threads, {bytes} bytes of workgroup memory, {buffers} storage buffers");
    match formats.len() {
        0 => {}
        n @ 1..=4 => write!(text, "; {n} weight formats ({})", formats.iter().copied().collect::<Vec<_>>().join(", "))?,
        n => write!(text, "; {n} weight formats")?,
    }
    if !kv.is_empty() {
        write!(text, "; KV states of {}", kv.into_iter().collect::<Vec<_>>().join(", "))?;
    }
    text.push_str(if subgroups { "; portable, and with subgroups" } else { "; portable" });
    Ok(text)
}

/// The documentation above an item, in one line.
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
        Access::Weight => "weight",
        Access::Units | Access::Groups | Access::Rows | Access::Tiles | Access::Beside => "a weight in units",
        Access::Kv => "KV state, read",
        Access::KvMut => "KV state, written",
        Access::KvBoth => "KV state, read and written",
        Access::StateMut => "state, written in place",
    }
}
