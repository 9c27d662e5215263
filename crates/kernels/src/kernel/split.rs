//! Weights larger than a binding are split along their rows.

use crate::caps::Caps;
use crate::kernel::format;
use gguf::GgmlType;
use std::ops::Range;

/// The row ranges in which a weight [rows, cols] is uploaded and dispatched, one buffer each.
/// Products and gathers write only the rows of their own range, so the results need no merge.
#[must_use]
pub fn parts(caps: &Caps, ty: GgmlType, rows: u32, cols: u32) -> Vec<Range<u32>> {
    let Some(format) = format::format(ty) else { return std::iter::once(0..rows).collect() };
    let limit = caps.max_binding_bytes.min(caps.max_buffer_bytes);
    if format.buffer_words(rows, cols) * 4 <= limit {
        return std::iter::once(0..rows).collect();
    }
    let table = format.buffer_words(0, cols) * 4;
    let row = u64::from(format.row_words(cols)) * 4;
    let most = (limit.saturating_sub(table) / row).clamp(1, u64::from(rows)) as u32;
    (0..rows.div_ceil(most)).map(|i| i * most..((i + 1) * most).min(rows)).collect()
}
