//! Writes NumPy array files: the header of a two-dimensional f32 array, and its values.

use std::io::{self, Write};

/// Writes the header of a version 1.0 file for a C-ordered `<f4` array [rows, cols].
pub fn header(out: &mut dyn Write, rows: usize, cols: usize) -> io::Result<()> {
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}");
    // Magic, version and length take 10 bytes. The data begins at a multiple of 64 bytes.
    let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.push_str(&" ".repeat(padded - 1 - text.len()));
    text.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(padded as u16).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

/// Appends values.
pub fn values(out: &mut dyn Write, values: &[f32]) -> io::Result<()> {
    for part in values.chunks(4096) {
        let bytes: Vec<u8> = part.iter().flat_map(|v| v.to_le_bytes()).collect();
        out.write_all(&bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn data_begins_at_a_multiple_of_64() {
        for (rows, cols) in [(1, 1), (86, 1024), (1_000_000, 262_144)] {
            let mut out = vec![];
            super::header(&mut out, rows, cols).unwrap();
            assert!(out.len().is_multiple_of(64) && out.ends_with(b"\n"));
            assert_eq!(usize::from(u16::from_le_bytes([out[8], out[9]])), out.len() - 10);
        }
    }
}
