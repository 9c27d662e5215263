//! Reads NumPy array files of little-endian f32 in C order.

use anyhow::{Context, Result, bail, ensure};
use std::path::Path;

/// An array and its shape.
pub struct Array {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// Reads an array of format version 1 or 2.
pub fn read_f32(path: &Path) -> Result<Array> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(bytes.len() > 12 && &bytes[..6] == b"\x93NUMPY", "{} is not an npy file", path.display());
    let (start, length) = match bytes[6] {
        1 => (10, usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))),
        2 => (12, u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize),
        version => bail!("{} has the unknown npy version {version}", path.display()),
    };
    let header = std::str::from_utf8(bytes.get(start..start + length).context("the header extends past the end")?)?;
    ensure!(header.contains("'<f4'") && header.contains("'fortran_order': False"), "{}: {header}", path.display());
    let inner = header
        .split_once("'shape': (")
        .and_then(|(_, rest)| rest.split_once(')'))
        .context("the header has no shape")?
        .0;
    let shape =
        inner.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let values = floats(&bytes[start + length..]);
    ensure!(values.len() == shape.iter().product::<usize>(), "{} is cut short", path.display());
    Ok(Array { shape, values })
}

/// The little-endian f32 values of these bytes.
pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}
