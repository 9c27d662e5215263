//! Prints results as a table with the columns of llama-bench, and as JSON.

use super::measure::{Bench, Measured};
use crate::inspect::millions;
use model::Size;
use serde_json::{Value, json};

/// The names and alignments of the columns.
pub const HEAD: &str = "\
| model            |      size |    params | device               | test             |         t/s (least to most) |    GB/s |   roof |
| ---------------- | --------: | --------: | -------------------- | ---------------- | --------------------------: | ------: | -----: |";

/// One result as a row.
pub fn line(bench: &Bench<'_>, measured: &Measured) -> String {
    let model = &bench.model;
    let parameters = millions(model.file().tensors().iter().map(gguf::TensorInfo::elements).sum());
    let (least, most) = measured.range();
    let rate = format!("{:.2} ({least:.2} to {most:.2})", measured.median());
    let bandwidth = bench.gb_per_second(measured);
    let roof = bench.roof_share(measured).map_or_else(|| "-".to_string(), |share| format!("{:.1}%", 100.0 * share));
    let size = Size(model.weight_bytes()).to_string();
    let (name, device, test) =
        (short(&name(bench), 16), short(&model.executor().name(), 20), measured.test.to_string());
    format!(
        "| {name:<16} | {size:>9} | {parameters:>9} | {device:<20} | {test:<16} | {rate:>27} | {bandwidth:>7.2} | {roof:>6} |"
    )
}

/// One result as an object.
pub fn json(bench: &Bench<'_>, measured: &Measured) -> Value {
    let executor = bench.model.executor();
    json!({
        "model": name(bench),
        "file": bench.args.source.name(),
        "device": executor.name(),
        "executor": executor.kind(),
        "kv": bench.args.place.kv().name(),
        "adapters": crate::lora::report(&bench.adapters),
        "test": measured.test.to_string(),
        "tokens_per_second": measured.median(),
        "least": measured.range().0,
        "most": measured.range().1,
        "samples": measured.rates,
        "gb_per_second": bench.gb_per_second(measured),
        "roof_share": bench.roof_share(measured),
    })
}

/// The architecture, the size label and the main type of the weights, as in `qwen3 8B Q4_K`.
fn name(bench: &Bench<'_>) -> String {
    let file = bench.model.file();
    let largest = crate::inspect::types(file).into_iter().max_by_key(|(_, (_, bytes))| *bytes);
    let label = file.get_opt::<&str>("general.size_label").ok().flatten().unwrap_or_default();
    let words = [bench.model.summary().architecture, label, largest.as_ref().map_or("", |(ty, _)| ty)];
    words.into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ")
}

fn short(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}
