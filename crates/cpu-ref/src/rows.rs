//! A matrix of rows in any GGUF tensor type.

use std::ops::Range;

use gguf::GgmlType;

/// Rows of `cols` elements of type `ty`, one after another, in the encoding of the file.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Element or block type.
    pub ty: GgmlType,
    /// Elements per row: a multiple of the type's block size.
    pub cols: usize,
    /// The bytes of whole rows.
    pub bytes: &'a [u8],
}

impl<'a> Rows<'a> {
    /// Wraps `bytes`. Panics if `cols` is not a whole number of blocks or if `bytes` is not a whole
    /// number of rows.
    pub fn new(ty: GgmlType, cols: usize, bytes: &'a [u8]) -> Self {
        let rows = Self { ty, cols, bytes };
        crate::check::rows("rows: bytes", bytes.len(), rows.row_bytes());
        rows
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        let Some(bytes) = self.ty.row_bytes(self.cols) else {
            panic!("rows: {} columns are not a whole number of {:?} blocks", self.cols, self.ty)
        };
        bytes
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.row_bytes()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The rows in `range`, without a copy.
    pub fn slice(&self, range: Range<usize>) -> Rows<'a> {
        let row_bytes = self.row_bytes();
        assert!(range.start <= range.end && range.end <= self.len(), "rows: slice {range:?} of {} rows", self.len());
        Rows { bytes: &self.bytes[range.start * row_bytes..range.end * row_bytes], ..*self }
    }

    /// Row `i` as f32; `y` has `cols` elements.
    pub fn dequantize_row(&self, i: usize, y: &mut [f32]) {
        crate::check::len("rows: y", y.len(), self.cols);
        let row = self.slice(i..i + 1);
        if let Err(error) = gguf::dequantize(self.ty, row.bytes, y) {
            panic!("rows: row {i}: {error}")
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Little-endian bytes of an f32 matrix.
    pub(crate) fn f32_bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    /// One Q8_0 block with scale 0.5 (f16 0x3800) and the quants -16..=15.
    pub(crate) fn q8_0_block() -> Vec<u8> {
        [0x00, 0x38].into_iter().chain((-16i8..16).map(|q| q as u8)).collect()
    }

    #[test]
    fn counts_slices_and_reads_f32_rows() {
        let bytes = f32_bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let rows = Rows::new(GgmlType::F32, 2, &bytes);
        assert_eq!((rows.len(), rows.row_bytes(), rows.is_empty()), (3, 8, false));
        let mut y = [f32::NAN; 2];
        rows.slice(1..3).dequantize_row(1, &mut y);
        assert_eq!(y, [5.0, 6.0]);
        assert!(rows.slice(3..3).is_empty());
    }

    #[test]
    fn reads_half_precision_rows_of_one_column() {
        let mut y = [f32::NAN];
        Rows::new(GgmlType::F16, 1, &[0x00, 0xc1]).dequantize_row(0, &mut y);
        assert_eq!(y, [-2.5]);
        Rows::new(GgmlType::BF16, 1, &[0x20, 0xc0]).dequantize_row(0, &mut y);
        assert_eq!(y, [-2.5]);
    }

    #[test]
    fn reads_the_second_block_row() {
        let bytes = [vec![0; 34], q8_0_block()].concat();
        let mut y = [f32::NAN; 32];
        Rows::new(GgmlType::Q8_0, 32, &bytes).dequantize_row(1, &mut y);
        assert_eq!((y[0], y[16], y[31]), (-8.0, 0.0, 7.5));
    }

    #[test]
    #[should_panic(expected = "33 columns are not a whole number")]
    fn columns_must_be_whole_blocks() {
        Rows::new(GgmlType::Q8_0, 33, &[0; 34]);
    }

    #[test]
    #[should_panic(expected = "rows: bytes has 35 elements, not a multiple of the row length 34")]
    fn bytes_must_be_whole_rows() {
        Rows::new(GgmlType::Q8_0, 32, &[0; 35]);
    }

    #[test]
    #[should_panic(expected = "slice 1..2 of 1 rows")]
    fn a_row_past_the_end_panics() {
        Rows::new(GgmlType::F32, 1, &[0; 4]).dequantize_row(1, &mut [0.0]);
    }
}
