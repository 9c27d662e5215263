//! Compares the quantizers' errors with llama.cpp's errors. A folder must hold NAME-F16.gguf and
//! quantized files of the same model.
//!
//! Prints the root-mean-square errors, the worst ratio of any tensor and the number of differing
//! bytes, per file and type. Exits with 1 if a ratio exceeds 1.02.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gguf::{GgmlType, Gguf, dequantize, quantize};

/// The largest allowed ratio of a tensor's error to llama.cpp's error.
const MOST: f64 = 1.02;

/// Types whose quantizer can choose other scales than llama.cpp.
const TYPES: [GgmlType; 8] = [
    GgmlType::Q4_0,
    GgmlType::Q4_1,
    GgmlType::Q5_0,
    GgmlType::Q5_1,
    GgmlType::Q8_0,
    GgmlType::Q4_K,
    GgmlType::Q5_K,
    GgmlType::Q6_K,
];

/// Sums over the tensors of one type in one file.
#[derive(Default)]
struct Row {
    tensors: usize,
    elements: usize,
    ours: f64,
    theirs: f64,
    worst: f64,
    differ: usize,
}

fn main() -> ExitCode {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if folders.is_empty() {
        eprintln!("usage: quant_error FOLDER...");
        return ExitCode::from(2);
    }
    println!(
        "{:24} {:5} {:>7} {:>12} {:>12} {:>8} {:>12}",
        "file", "type", "tensors", "rmse", "llama.cpp", "worst", "bytes differ"
    );
    let mut worst = 0.0f64;
    for folder in &folders {
        match compare(folder) {
            Ok(ratio) => worst = worst.max(ratio),
            Err(error) => {
                eprintln!("error: {}: {error}", folder.display());
                return ExitCode::FAILURE;
            }
        }
    }
    println!("worst ratio {worst:.4}, at most {MOST}");
    if worst > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Compares all files of a folder; returns the worst ratio.
fn compare(folder: &Path) -> Result<f64, Box<dyn Error>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "gguf"));
    paths.sort();
    let is_source = |path: &PathBuf| path.to_string_lossy().ends_with("-F16.gguf");
    let source = open(paths.iter().find(|path| is_source(path)).ok_or("no *-F16.gguf")?)?;
    let (mut worst, mut rows) = (0.0f64, 0);
    for path in paths.iter().filter(|path| !is_source(path)) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (ty, row) in compare_file(&source, &open(path)?)? {
            let (ours, theirs) = (rms(row.ours, row.elements), rms(row.theirs, row.elements));
            println!(
                "{name:24} {ty:5} {:7} {ours:12.5e} {theirs:12.5e} {:8.4} {:12}",
                row.tensors, row.worst, row.differ
            );
            worst = worst.max(row.worst);
            rows += 1;
        }
    }
    if rows == 0 { Err("nothing to compare".into()) } else { Ok(worst) }
}

fn compare_file(source: &Gguf, quantized: &Gguf) -> Result<BTreeMap<GgmlType, Row>, Box<dyn Error>> {
    let mut rows = BTreeMap::<GgmlType, Row>::new();
    for tensor in quantized.tensors() {
        let ty = tensor.ty()?;
        if !TYPES.contains(&ty) {
            continue;
        }
        let weights = source.dequantized(source.tensor(tensor.name())?)?;
        let mut theirs = vec![0; tensor.bytes as usize];
        quantized.read_tensor(tensor, 0, &mut theirs)?;
        let ours = quantize(ty, &weights, tensor.cols() as usize)?;
        let (our_error, their_error) = (squared_error(ty, &ours, &weights)?, squared_error(ty, &theirs, &weights)?);
        let row = rows.entry(ty).or_default();
        row.tensors += 1;
        row.elements += weights.len();
        row.ours += our_error;
        row.theirs += their_error;
        row.worst = row.worst.max((our_error / their_error).sqrt());
        row.differ += ours.iter().zip(&theirs).filter(|(a, b)| a != b).count();
    }
    Ok(rows)
}

fn squared_error(ty: GgmlType, bytes: &[u8], weights: &[f32]) -> gguf::Result<f64> {
    let mut values = vec![0.0; weights.len()];
    dequantize(ty, bytes, &mut values)?;
    Ok(values.iter().zip(weights).map(|(a, b)| (*a as f64 - *b as f64).powi(2)).sum())
}

fn rms(squares: f64, elements: usize) -> f64 {
    (squares / elements as f64).sqrt()
}

fn open(path: &PathBuf) -> gguf::Result<Gguf> {
    Gguf::open(path)
}
