//! `map`: makes plans, and writes the kernels that they run as tables to docs/kernels.md.

use crate::workspace::{FAMILIES, read, root};
use anyhow::Context as _;
use cpu_ref::{KvType, Mask};
use gguf::GgmlType;
use kernels::Precision;
use kernels::ops::{self, Attend};
use kernels::plan::{PlanOptions, merge_rules, plan};
use kernels::testing::Switches;
use kernels::testing::kernel::Kernel;
use kernels::testing::kernel::dispatch::When;
use kernels::testing::kinds::card;
use kernels::testing::language::kernels;
use kernels::testing::{attention, matmul};
use kernels::{Caps, Class, Counts, KvState, Lead, Recorder, RopeTable, Shape, StateKind, Tensor, Weight, Weights};
use kernels::{Executor, TensorBytes};
use std::fmt::Write as _;

const PATH: &str = "docs/kernels.md";

const HEAD: &str = "# Which kernel runs when

`cargo xtask map` writes this file from plans and sources; do not edit it. The plans have the
options of `weft run`: activations may be rounded. The KV cache is f16 and the weights are Q4_K,
unless the title says otherwise. A cell names the kernels of a step, grouped by the positions at
which they run, and in order within a group.

There are three columns: a browser (WebGPU's default limits), a discrete card with subgroups of 32
threads, and the same card with cooperative matrices (tensor cores). \"Below N\" and \"from N\" are
positions: a plan may have one kernel for short contexts and another kernel for long ones. The last
section lists all kernels.

The times in reasons and gains are those of an NVIDIA H200; that of the choice of experts is of an
NVIDIA H100.
";

/// The steps of a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Steps {
    /// All rows are of one sequence.
    Prompt,
    /// Every row is of another sequence.
    Sequences,
    /// The plan has one form for all steps.
    Any,
}

impl Steps {
    /// The rows of the steps. A plan of few rows serves both kinds of steps.
    fn rows(self) -> &'static [u32] {
        match self {
            Self::Prompt => &[2, 8, 9, 12, 17, 33, 65, 512],
            Self::Sequences => &[1, 2, 8, 9, 12, 17, 33, 64],
            Self::Any => &[1, 2, 8, 9, 12, 17, 33, 65, 512],
        }
    }

    /// The positions at which a dispatch runs in these steps, in words; `None` if it never runs.
    fn positions(self, when: When) -> Option<String> {
        let from = |n: u32| if n == 0 { String::new() } else { format!("from {n}: ") };
        let below = |n: u32| if n == u32::MAX { String::new() } else { format!("below {n}: ") };
        match (self, when) {
            (_, When::Always) => Some(String::new()),
            (Self::Sequences, When::Near(end)) => Some(below(end)),
            (Self::Sequences, When::Far { near, .. }) => Some(from(near)),
            (Self::Prompt, When::Deep(at)) => Some(from(at)),
            (Self::Prompt, When::Far { deep, .. }) => Some(below(deep)),
            (Self::Sequences, When::Deep(_)) | (Self::Prompt, When::Near(_)) => None,
            (Self::Any, _) => panic!("the plan has other forms for other steps"),
        }
    }
}

/// The devices of the table columns.
fn devices() -> [(&'static str, Caps); 3] {
    let card = |cooperative| card(Class::Discrete, 32, cooperative);
    [("browser", Caps::WEBGPU), ("card", card(false)), ("card with tensor cores", card(true))]
}

/// Writes the file, or checks it. Returns true if it is up to date.
pub fn run(check: bool) -> anyhow::Result<bool> {
    let text = render()?;
    if check {
        let fresh = read(PATH).is_ok_and(|found| found == text);
        if !fresh {
            eprintln!("{PATH} is stale: run `cargo xtask map`");
        }
        return Ok(fresh);
    }
    std::fs::write(root().join(PATH), text).with_context(|| format!("writing {PATH}"))?;
    println!("wrote {PATH}");
    Ok(true)
}

fn render() -> anyhow::Result<String> {
    let mut text = HEAD.to_string();
    let usual = |rows| Attending { rows, dim: 128, heads: 32, kv_heads: 8, ty: KvType::F16, window: None };
    let first = "attention of 32 query heads of 128, 8 KV heads, and the product after it";
    table(&mut text, &format!("One prompt: {first}"), Steps::Prompt, |rows| usual(rows).record())?;
    table(&mut text, &format!("One row of each of several sequences: {first}"), Steps::Sequences, |rows| {
        usual(rows).record()
    })?;
    table(&mut text, "Products with a weight of 4096 x 4096", Steps::Any, |rows| {
        product(rows, GgmlType::Q4_K, 4096, 4096)
    })?;
    let mut attending = |title: &str, of: &dyn Fn(u32) -> Attending| -> anyhow::Result<()> {
        table(&mut text, &format!("One prompt: {title}"), Steps::Prompt, |rows| of(rows).record())?;
        table(&mut text, &format!("Several sequences: {title}"), Steps::Sequences, |rows| of(rows).record())
    };
    for (dim, heads, kv_heads) in [(64, 14, 2), (80, 16, 16), (256, 8, 1), (512, 8, 1)] {
        let title = format!("{heads} query heads of {dim}, {kv_heads} KV head(s)");
        attending(&title, &|rows| Attending { dim, heads, kv_heads, ..usual(rows) })?;
    }
    attending("8 query heads of 256, 1 KV head, window of 512", &|rows| Attending {
        dim: 256,
        heads: 8,
        kv_heads: 1,
        window: Some(512),
        ..usual(rows)
    })?;
    attending("32 query heads of 128, 8 KV heads, q8_0 cache", &|rows| Attending { ty: KvType::Q8_0, ..usual(rows) })?;
    table(&mut text, "Products with a weight of 1024 x 4096", Steps::Any, |rows| {
        product(rows, GgmlType::Q4_K, 4096, 1024)
    })?;
    table(&mut text, "Products with a weight of 12288 x 4096 in F16", Steps::Any, |rows| {
        product(rows, GgmlType::F16, 4096, 12_288)
    })?;
    let title = "A gated pair of products with weights of 12288 x 4096, and the product that reads it";
    table(&mut text, title, Steps::Any, gated)?;
    let title = "Experts: 8 of 128, each of 768 x 2048, between two sums with the norms and the router that read them";
    table(&mut text, title, Steps::Any, experts)?;
    ladders(&mut text)?;
    every_kernel(&mut text)?;
    Ok(text)
}

/// The ladders, and the rules that merge operations.
fn ladders(text: &mut String) -> anyhow::Result<()> {
    text.push_str(
        "\n## The ladder of products\n\nA product takes the first rung that serves it, and nothing else decides \
         (`crates/kernels/src/matmul/ladder.rs`). A rung has forms: one variant for each part of a weight.\n\n",
    );
    text.push_str(
        "| kernel | domain | operand | forms | needs at most | reason for its place |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for rung in &matmul::ladder::LADDER {
        writeln!(
            text,
            "| `{}` | {} | {:?} | {} | {} | {} |",
            rung.kernel.name,
            rung.domain,
            rung.rounding,
            rung.forms,
            needs(rung.kernel),
            rung.beats
        )?;
    }
    text.push_str(
        "\n## The ladder of attention\n\nAn attention takes the first rung that serves it, and nothing else decides \
         (`crates/kernels/src/attention/ladder.rs`).\n\n",
    );
    text.push_str("| kernel | domain | needs at most | reason for its place |\n| --- | --- | --- | --- |\n");
    for rung in &attention::ladder::LADDER {
        writeln!(text, "| `{}` | {} | {} | {} |", rung.kernel.name, rung.domain, needs(rung.kernel), rung.beats)?;
    }
    text.push_str("\n## The rules that merge operations\n\nNorms, packing and gated activations have no ladder: the rule that merges one with its neighbours \
         chooses its kernel. In the order of the passes (`crates/kernels/src/plan/merge/rules.rs`).\n\n");
    text.push_str("| result | merged operations | how | needs at most | gain |\n| --- | --- | --- | --- | --- |\n");
    let kernels = kernels();
    for [name, merges, direction, beats] in merge_rules() {
        // An operation without a kernel of the same name uses the kernel of one of its parts.
        let kernel = kernels.iter().find(|kernel| kernel.name == name);
        let needs = kernel.map_or_else(|| "the needs of its parts".to_string(), |kernel| needs(kernel));
        writeln!(text, "| `{name}` | {merges} | {direction} | {needs} | {beats} |")?;
    }
    Ok(())
}

/// What every kernel computes, by family: the first line of the file that declares it.
fn every_kernel(text: &mut String) -> anyhow::Result<()> {
    text.push_str(
        "\n## All kernels\n\nThe families are in the order in which they may use each other. The head of a shader says \
         how its workgroups share the work; [contracts.md](contracts.md) has params, bindings and needs.\n",
    );
    let all = kernels();
    for family in FAMILIES {
        let path = format!("crates/kernels/src/{family}/");
        let about = read(&format!("{path}mod.rs"))?;
        let about = about.lines().next().and_then(|line| line.strip_prefix("//! ")).context("a family has a head")?;
        write!(text, "\n### {family}\n\n{about}\n\n| kernel | result |\n| --- | --- |\n")?;
        for kernel in all.iter().filter(|kernel| kernel.file.replace('\\', "/").starts_with(&path)) {
            let source = read(kernel.file)?;
            let head = source.lines().map_while(|line| line.strip_prefix("//!"));
            let head = head.map(str::trim).collect::<Vec<_>>().join(" ").replace(['[', ']'], "").replace('|', "\\|");
            writeln!(text, "| [`{}`](contracts.md#{0}) | {head} |", kernel.name)?;
        }
    }
    Ok(())
}

/// The largest needs of a kernel's variants.
fn needs(kernel: &Kernel) -> String {
    let threads = kernel.variants.iter().map(|variant| variant.needs.threads).max().unwrap_or(0);
    let bytes = kernel.variants.iter().map(|variant| variant.needs.workgroup_bytes).max().unwrap_or(0);
    let matrices = if kernel.cooperative() { ", cooperative matrices" } else { "" };
    format!("{threads} threads, {bytes} bytes, {} buffers{matrices}", kernel.bindings.len())
}

fn table(text: &mut String, title: &str, steps: Steps, record: impl Fn(u32) -> Recorder) -> anyhow::Result<()> {
    let devices = devices();
    let names: Vec<_> = devices.iter().map(|(name, _)| *name).collect();
    write!(text, "\n## {title}\n\n| rows | {} |\n| --- |{}\n", names.join(" | "), " --- |".repeat(names.len()))?;
    for &rows in steps.rows() {
        let rec = record(rows);
        let cells: Vec<_> = devices.iter().map(|(_, caps)| cell(&rec, caps, steps)).collect::<Result<_, _>>()?;
        writeln!(text, "| {rows} | {} |", cells.join(" | "))?;
    }
    Ok(())
}

/// The kernels of a plan that run in these steps, grouped by range of positions.
fn cell(rec: &Recorder, caps: &Caps, steps: Steps) -> anyhow::Result<String> {
    let options = PlanOptions::plain().precision(Precision::Fast);
    let mut groups: Vec<(String, Vec<String>)> = vec![];
    for placed in plan(rec, caps, &options)?.dispatches {
        let Some(positions) = steps.positions(placed.dispatch.when) else { continue };
        let name = format!("`{}`", placed.dispatch.variant.name);
        match groups.iter_mut().find(|(of, _)| *of == positions) {
            Some((_, names)) => names.push(name),
            None => groups.push((positions, vec![name])),
        }
    }
    let group = |(positions, names): &(String, Vec<String>)| format!("{positions}{}", names.join(", "));
    Ok(groups.iter().map(group).collect::<Vec<_>>().join("; "))
}

fn weight(id: usize, ty: GgmlType, rows: u32, cols: u32) -> Weight {
    let mut weights = Weights::new(&Executor::Cpu);
    let empty = TensorBytes::Owned([].into());
    let made = (0..=id).map(|n| weights.matrix(&n.to_string(), ty, rows, cols, &empty)).last();
    made.and_then(Result::ok).expect("a type that has kernels, and a dry set reads nothing")
}

fn rows_of(rec: &mut Recorder, number: u32, rows: u32, width: u32) -> Tensor {
    rec.host_input(number, Shape::new(Lead::Step, rows, width))
}

fn product(rows: u32, ty: GgmlType, cols: u32, n: u32) -> Recorder {
    let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[]);
    let x = rows_of(&mut rec, 0, rows, cols);
    let y = ops::matmul(&mut rec, weight(0, ty, n, cols), x);
    rec.output(y);
    rec
}

fn gated(rows: u32) -> Recorder {
    let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[]);
    let x = rows_of(&mut rec, 0, rows, 4096);
    let [gate, up] = [0, 1].map(|id| ops::matmul(&mut rec, weight(id, GgmlType::Q4_K, 12_288, 4096), x));
    let y = ops::swiglu(&mut rec, gate, up);
    let y = ops::matmul(&mut rec, weight(2, GgmlType::Q4_K, 4096, 12_288), y);
    rec.output(y);
    rec
}

/// Experts as Qwen3 records them: from the sum after attention to the product after the next norm.
fn experts(rows: u32) -> Recorder {
    const COUNT: u32 = 128;
    let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[]);
    let [h, a] = [0, 1].map(|number| rows_of(&mut rec, number, rows, 2048));
    let of = |id, ty, rows, cols| weight(id, ty, rows, cols);
    let h = ops::add(&mut rec, h, a);
    let x = ops::rms_norm(&mut rec, h, Some(of(0, GgmlType::F32, 1, 2048)), 1e-6);
    let logits = ops::matmul_exact(&mut rec, of(1, GgmlType::F32, COUNT, 2048), x);
    let routes = ops::route(&mut rec, logits, 8, true, None);
    let [gate, up] =
        [2, 3].map(|id| ops::matmul_experts(&mut rec, of(id, GgmlType::Q4_K, COUNT * 768, 2048), 0..768, x, &routes));
    let y = ops::swiglu(&mut rec, gate, up);
    let y = ops::matmul_experts(&mut rec, of(4, GgmlType::Q4_K, COUNT * 2048, 768), 0..2048, y, &routes);
    let y = ops::combine_experts(&mut rec, y, routes.weights);
    let h = ops::add(&mut rec, h, y);
    let x = ops::rms_norm(&mut rec, h, Some(of(5, GgmlType::F32, 1, 2048)), 1e-6);
    let y = ops::matmul(&mut rec, of(6, GgmlType::Q4_K, 4096, 2048), x);
    rec.output(h);
    rec.output(y);
    rec
}

/// Attention as a model records it, with the rotations before it and the matrix product after it.
/// Up to 64 rows, each row belongs to another sequence.
struct Attending {
    rows: u32,
    dim: u32,
    heads: u32,
    kv_heads: u32,
    ty: KvType,
    window: Option<usize>,
}

impl Attending {
    fn record(self) -> Recorder {
        let Self { rows, dim, heads, kv_heads, ty, window } = self;
        let mut rec = Recorder::new(Counts { step: rows, out: 0 }, &[StateKind::kv(ty, kv_heads * dim); 2]);
        let table = rec.rope_rows(&RopeTable::new(dim, 1e6));
        let [q, k, v] = [heads, kv_heads, kv_heads].map(|n| rows_of(&mut rec, n * dim, rows, n * dim).heads(n));
        let [q, k] = [q, k].map(|x| ops::rope(&mut rec, x, table));
        let states = KvState::new(rec.state(0), rec.state(1));
        let kv = ops::kv_append(&mut rec, states, k, v);
        let mask = window.map_or(Mask::Causal, Mask::Window);
        let y = ops::attention(
            &mut rec,
            q,
            kv,
            kv_heads,
            Attend { mask, scale: (dim as f32).sqrt().recip(), softcap: None },
        );
        let y = ops::matmul(&mut rec, weight(0, GgmlType::Q4_K, 4096, heads * dim), y.flat());
        rec.output(y);
        rec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rung must appear in a plan of the tables. If it fails, delete the rung, or add a table
    /// with a plan that takes it.
    #[test]
    fn every_rung_is_taken_by_some_plan() {
        let text = render().expect("plans");
        let tables = text.split("\n## The ladder").next().unwrap_or_default();
        let kernels = matmul::ladder::LADDER.iter().map(|rung| rung.kernel);
        for kernel in kernels.chain(attention::ladder::LADDER.iter().map(|rung| rung.kernel)) {
            let taken = kernel.variants.iter().any(|variant| tables.contains(&format!("`{}`", variant.name)));
            assert!(taken, "{}", kernel.name);
        }
    }
}
