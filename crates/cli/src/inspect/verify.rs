//! Reads every tensor and checks it for damage.

use crate::progress::Bar;
use anyhow::Result;
use gguf::{Gguf, TensorInfo, dequantize};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of bytes that one thread reads at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Returns one line for every damaged tensor, in the order of the file.
///
/// # Errors
/// The file cannot be read.
pub fn verify(file: &Gguf) -> Result<Vec<String>> {
    let total: u64 = file.tensors().iter().map(|t| t.bytes).sum();
    let (bar, done) = (Bar::bytes("verifying"), AtomicU64::new(0));
    let found: Vec<Option<String>> = file
        .tensors()
        .par_iter()
        .map(|tensor| {
            damage(file, tensor, &|bytes| {
                let before = done.fetch_add(bytes, Ordering::Relaxed);
                bar.set(before + bytes, total);
            })
        })
        .collect::<Result<_, gguf::Error>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Describes the damage of one tensor, if there is any.
fn damage(file: &Gguf, tensor: &TensorInfo, read: &(dyn Fn(u64) + Sync)) -> Result<Option<String>, gguf::Error> {
    let Ok(ty) = tensor.ty() else {
        return Ok(tensor.ty().err().map(|error| error.to_string()));
    };
    let blocks = CHUNK_BYTES / ty.block_bytes();
    let parts = tensor.bytes.div_ceil((blocks * ty.block_bytes()) as u64);
    let counts = (0..parts).into_par_iter().map(|part| {
        let offset = part * (blocks * ty.block_bytes()) as u64;
        let mut bytes = vec![0; (tensor.bytes - offset).min((blocks * ty.block_bytes()) as u64) as usize];
        file.read_tensor(tensor, offset, &mut bytes)?;
        let mut values = vec![0.0; bytes.len() / ty.block_bytes() * ty.block_size()];
        dequantize(ty, &bytes, &mut values)?;
        read(bytes.len() as u64);
        let nan = values.iter().filter(|v| v.is_nan()).count();
        let infinite = values.iter().filter(|v| v.is_infinite()).count();
        Ok([nan, infinite])
    });
    let [nan, infinite] = counts.try_reduce(|| [0, 0], |a, b| Ok([a[0] + b[0], a[1] + b[1]]))?;
    if nan + infinite == 0 {
        return Ok(None);
    }
    Ok(Some(format!("tensor {} has {nan} NaN and {infinite} infinite values of {}", tensor.name(), tensor.elements())))
}
