//! Weights that become another type while they load.

use crate::error::Error;
use crate::exec::weights::TensorBytes;
use gguf::GgmlType;
use std::ops::Range;
use std::sync::Arc;

/// Blocks that are converted at a time: their values fit into the cache of a core.
const BLOCKS: u64 = 1024;

/// A tensor in the type `to`, made of its source in the type `from`.
pub struct Quantized {
    tensor: String,
    from: GgmlType,
    to: GgmlType,
    source: TensorBytes,
}

impl TensorBytes {
    /// This tensor in the type `to`. Its blocks are made as they are read, so that neither the
    /// tensor nor a copy in f32 is ever whole in memory. `tensor` is the name of the tensor in
    /// errors. The rows of the tensor must be whole blocks of `to`.
    ///
    /// Reads are an [`Error::Quantize`] if [`gguf::quantize`] refuses the type or a value.
    ///
    /// # Panics
    /// If `from` has blocks.
    #[must_use]
    pub fn quantized(self, tensor: &str, from: GgmlType, to: GgmlType) -> Self {
        assert!(!from.is_quantized(), "{tensor}: {from} has blocks");
        Self::Quantized(Arc::new(Quantized { tensor: tensor.to_string(), from, to, source: self }))
    }
}

impl Quantized {
    /// Fills `buf` with the bytes of the new type from byte `offset` on.
    pub(super) fn read(&self, mut offset: u64, mut buf: &mut [u8]) -> Result<(), Error> {
        let block_bytes = self.to.block_bytes() as u64;
        while !buf.is_empty() {
            let first = offset / block_bytes;
            let last = (offset + buf.len() as u64).div_ceil(block_bytes).min(first + BLOCKS);
            let blocks = self.blocks(first..last)?;
            let skipped = (offset - first * block_bytes) as usize;
            let (part, rest) = buf.split_at_mut(buf.len().min(blocks.len() - skipped));
            part.copy_from_slice(&blocks[skipped..][..part.len()]);
            (offset, buf) = (offset + part.len() as u64, rest);
        }
        Ok(())
    }

    fn blocks(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        let first = range.start * self.to.block_size() as u64;
        let mut values = vec![0.0; (range.end - range.start) as usize * self.to.block_size()];
        let mut source = vec![0; values.len() * self.from.block_bytes()];
        self.source.read(first * self.from.block_bytes() as u64, &mut source)?;
        let quantized = gguf::dequantize(self.from, &source, &mut values)
            .and_then(|()| gguf::quantize(self.to, &values, values.len()));
        quantized.map_err(|error| self.refused(error, first))
    }

    /// The error about a part that begins at element `first`.
    fn refused(&self, error: gguf::Error, first: u64) -> Error {
        let error = match error {
            gguf::Error::NotFinite { index, value } => gguf::Error::NotFinite { index: index + first as usize, value },
            error => error,
        };
        Error::Quantize { tensor: self.tensor.clone(), ty: self.to.name(), error: Box::new(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F16 values of three parts and a bit, and their NF4 blocks.
    fn source() -> (TensorBytes, Vec<u8>) {
        let values: Vec<f32> =
            (0..(3 * BLOCKS + 5) * 64).map(|i| (1e3 * (i as f64 * 0.7391).sin()).sin() as f32).collect();
        let halves = gguf::quantize(GgmlType::F16, &values, values.len()).unwrap();
        let mut rounded = values;
        gguf::dequantize(GgmlType::F16, &halves, &mut rounded).unwrap();
        let expected = gguf::quantize(GgmlType::NF4, &rounded, 64).unwrap();
        (TensorBytes::Owned(halves.into()).quantized("w", GgmlType::F16, GgmlType::NF4), expected)
    }

    #[test]
    fn any_part_has_the_bytes_of_the_whole() {
        let (source, expected) = source();
        let all = expected.len();
        for (from, to) in
            [(0, all), (0, 0), (0, 1), (35, 37), (36, 72), (7, all - 1), (all - 37, all), (all / 2, all / 2 + 40_000)]
        {
            let mut read = vec![0xee; to - from];
            source.read(from as u64, &mut read).unwrap();
            assert!(read == expected[from..to], "{from}..{to}");
        }
    }

    #[test]
    fn a_value_that_is_not_finite_is_named_by_its_place_in_the_tensor() {
        let mut values = vec![1.0f32; 2 * BLOCKS as usize * 64];
        let at = BLOCKS as usize * 64 + 70;
        values[at] = f32::NAN;
        let bytes = TensorBytes::Owned(bytemuck::cast_slice(&values).into());
        let source = bytes.quantized("blk.0.attn_q.weight", GgmlType::F32, GgmlType::NF4);
        let error = source.read(0, &mut vec![0; values.len() / 64 * 36]).unwrap_err().to_string();
        let expected = format!(
            "tensor blk.0.attn_q.weight cannot become NF4: element {at} is NaN; only finite values can be quantized"
        );
        assert_eq!(error, expected);
        source.read(0, &mut [0; 36]).unwrap();
    }

    #[test]
    fn a_source_that_ends_early_is_an_error() {
        let source = TensorBytes::At(Arc::new(vec![0_u8; 100]), 0).quantized("cut", GgmlType::F32, GgmlType::NF4);
        assert!(matches!(source.read(0, &mut [0; 36]), Err(Error::Read(_))));
    }
}
