//! Rows of an embedding table by token id.

use crate::Rows;

/// `y[t] = table[ids[t]]`. `table [V, D]` of any type, `ids [T]`, each below V; `y [T, D]`.
pub fn embed(table: &Rows, ids: &[u32], y: &mut [f32]) {
    crate::check::len("embed: y", y.len(), ids.len() * table.cols);
    for (&id, y) in ids.iter().zip(y.chunks_exact_mut(table.cols)) {
        assert!((id as usize) < table.len(), "embed: id {id} of a table of {} rows", table.len());
        table.dequantize_row(id as usize, y);
    }
}

#[cfg(test)]
mod tests {
    use gguf::GgmlType;

    use super::*;
    use crate::rows::tests::{f32_bytes, q8_0_block};

    #[test]
    fn repeated_and_unordered_ids() {
        let bytes = f32_bytes(&[0.0, 1.0, 10.0, 11.0, 20.0, 21.0]);
        let mut y = [f32::NAN; 6];
        embed(&Rows::new(GgmlType::F32, 2, &bytes), &[2, 0, 2], &mut y);
        assert_eq!(y, [20.0, 21.0, 0.0, 1.0, 20.0, 21.0]);
    }

    #[test]
    fn quantized_table() {
        let bytes = [vec![0; 34], q8_0_block()].concat();
        let mut y = [f32::NAN; 32];
        embed(&Rows::new(GgmlType::Q8_0, 32, &bytes), &[1], &mut y);
        assert_eq!((y[0], y[31]), (-8.0, 7.5));
    }

    #[test]
    fn no_tokens_write_nothing() {
        embed(&Rows::new(GgmlType::F32, 1, &[0; 4]), &[], &mut []);
    }

    #[test]
    #[should_panic(expected = "embed: id 1 of a table of 1 rows")]
    fn an_id_past_the_table_panics() {
        embed(&Rows::new(GgmlType::F32, 1, &[0; 4]), &[1], &mut [0.0]);
    }
}
