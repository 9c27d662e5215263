//! Prints metadata and tensors as text and as JSON.

use crate::text::printable;
use gguf::{Gguf, TensorInfo, Value};
use model::Size;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The number of characters of a value that a line shows.
const SHOWN: usize = 100;
/// The longest array that JSON contains. Longer ones (vocabularies) become their type and length.
const LISTED: usize = 256;

/// The number of tensors and of bytes of each type, by the type's name.
pub fn types(file: &Gguf) -> BTreeMap<String, (usize, u64)> {
    let mut types = BTreeMap::<String, (usize, u64)>::new();
    for tensor in file.tensors() {
        let entry = types.entry(type_name(tensor)).or_default();
        *entry = (entry.0 + 1, entry.1 + tensor.bytes);
    }
    types
}

fn type_name(tensor: &TensorInfo) -> String {
    tensor.ty().map_or_else(|_| format!("type {}", tensor.ty_number), |ty| ty.name().to_string())
}

fn parameters(file: &Gguf) -> u64 {
    file.tensors().iter().map(TensorInfo::elements).sum()
}

/// Prints the header: metadata and tensors.
pub fn print(out: &mut impl Write, name: &str, file: &Gguf) -> io::Result<()> {
    let size = Size(file.source().len_bytes());
    writeln!(out, "{name}: GGUF version {}, {size}, alignment {}", file.version(), file.alignment())?;
    writeln!(out, "\nmetadata")?;
    for (key, value) in file.metadata() {
        writeln!(out, "  {} = {}", printable(key), short(&value))?;
    }
    writeln!(out, "\ntensors (columns first)")?;
    for tensor in file.tensors() {
        let shape = tensor.shape().iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
        let size = Size(tensor.bytes).to_string();
        writeln!(out, "  {:<40} {:<8} {shape:>18} {size:>10}", printable(tensor.name()), type_name(tensor))?;
    }
    let kinds = types(file).into_iter().map(|(ty, (n, bytes))| format!("{n} {ty} ({})", Size(bytes)));
    let (tensors, parameters) = (file.tensors().len(), millions(parameters(file)));
    writeln!(out, "\n{tensors} tensors, {parameters} parameters: {}", kinds.collect::<Vec<_>>().join(", "))
}

/// Formats a count in millions or billions.
pub fn millions(count: u64) -> String {
    match count {
        0..1_000_000 => count.to_string(),
        1_000_000..1_000_000_000 => format!("{:.2} M", count as f64 / 1e6),
        _ => format!("{:.2} B", count as f64 / 1e9),
    }
}

fn short(value: &Value<'_>) -> String {
    let text = match value {
        Value::Array(array) => format!("{} {} {value}", array.len(), array.element_type()),
        value => value.to_string(),
    };
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}... ({} characters)", printable(&text[..end]), text.chars().count()),
        None => printable(&text).into_owned(),
    }
}

/// The header as a JSON object.
pub fn json(name: &str, file: &Gguf) -> Json {
    let metadata: Map<String, Json> =
        file.metadata().map(|(key, value)| (key.to_string(), value_json(&value))).collect();
    let tensor = |t: &TensorInfo| json!({ "name": t.name(), "type": type_name(t), "shape": t.shape(), "bytes": t.bytes, "offset": t.offset });
    let types = types(file).into_iter().map(|(ty, (n, bytes))| (ty, json!({ "tensors": n, "bytes": bytes })));
    json!({
        "file": name,
        "bytes": file.source().len_bytes(),
        "version": file.version(),
        "alignment": file.alignment(),
        "architecture": file.architecture().ok(),
        "parameters": parameters(file),
        "types": types.collect::<Map<_, _>>(),
        "metadata": metadata,
        "tensors": file.tensors().iter().map(tensor).collect::<Vec<_>>(),
    })
}

fn value_json(value: &Value<'_>) -> Json {
    match value {
        Value::Bool(v) => json!(v),
        Value::F32(v) => json!(v),
        Value::F64(v) => json!(v),
        Value::Str(v) => json!(v),
        Value::Bytes(v) => json!(String::from_utf8_lossy(v)),
        Value::Array(array) if array.len() <= LISTED => array.iter().map(|v| value_json(&v)).collect(),
        Value::Array(array) => json!({ "array": array.element_type().name(), "length": array.len() }),
        integer => {
            integer.as_integer().map_or(Json::Null, |v| i64::try_from(v).map_or_else(|_| json!(v as u64), |v| json!(v)))
        }
    }
}
