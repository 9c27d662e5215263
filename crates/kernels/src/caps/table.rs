//! The table by which kernels are chosen: thresholds measured for a class of adapters, or for this
//! adapter. Numbers that `weft tune` does not measure are constants of `measured` and `steps`.
//! No other file names the card of a measurement.

pub(crate) mod measured;
pub(crate) mod steps;
#[cfg(test)]
mod tests;

use crate::caps::Class;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Thresholds at which one kernel takes over from another. With any numbers within their
/// [`Threshold::within`], every kernel that is chosen is correct. A table changes only the times,
/// and which of the roundings that [`Precision::Fast`](crate::Precision::Fast) allows is used.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Rows of activations up to which a product with a quantized weight reads 8-bit activations.
    pub q8_rows: u32,
    /// Rows up to which cooperative matrices multiply in tiles of 16 to 96 rows
    /// (`matmul_tile64`). More rows are multiplied in tiles of 128 (`matmul_tile128`), if narrow
    /// ones are more than 3/2 of `workgroups`.
    pub tile64_rows: u32,
    /// Context length up to which attention of one row is a single kernel (`attention_decode`).
    /// Longer contexts are split into parts that a second kernel joins (`attention_split`). The
    /// number holds for heads of 128, and for heads of 256 that rotate as a whole. It is halved for
    /// other heads of 256 and for heads of 512. For several rows, each of another sequence, it is
    /// multiplied by (rows + 1) / 2, up to 2048.
    pub decode_keys: u32,
    /// Number of workgroups that share attention of few rows over a long context. More rows are
    /// computed like few rows while tiles without cooperative matrices would have at most 32
    /// threads for each of these workgroups.
    pub split_workgroups: u32,
    /// A product of one row also computes the residual sum and the norm after it, if its weight has
    /// at most this many columns per row of the weight.
    pub norm_columns: u32,
    /// Columns up to which two products and their gated activation are one kernel with cooperative
    /// matrices.
    pub glu_columns: u32,
    /// Columns above which more threads share a row of a weight in products of one row. A product
    /// that also computes the norm after it uses twice as many threads from this number on.
    pub vec_columns: u32,
    /// Columns up to which every workgroup of a group of products packs the row that it reads. For
    /// longer rows the packing is a dispatch of its own.
    pub prologue_columns: u32,
    /// Columns up to which every workgroup of a gated pair of products packs the row that it reads.
    pub glu_prologue_columns: u32,
    /// Position from which on attention of one row over a window is split into parts that the
    /// output product joins.
    pub window_keys: u32,
    /// Workgroups that the device runs at the same time. Where products or attention of several
    /// rows would have too few workgroups, compared with this number or a multiple of it, they use
    /// kernels with more and smaller ones.
    pub workgroups: u32,
    /// Largest number of prompt rows that are evaluated together, if memory allows.
    pub chunk: u32,
}

/// One number of a [`Table`]: its name, its meaning and its range.
#[derive(Debug)]
pub struct Threshold {
    pub name: &'static str,
    pub about: &'static str,
    /// The range in which parity cases hold the kernels to their oracles.
    pub within: RangeInclusive<u32>,
    field: fn(&mut Table) -> &mut u32,
}

/// The default numbers. Parity cases draw sizes around them.
pub(crate) const USUAL_WORKGROUPS: u32 = 128;
pub(crate) const USUAL_VEC_COLUMNS: u32 = 4096;

/// Every number of a table, in the order in which the file lists them.
pub static THRESHOLDS: [Threshold; 12] = [
    Threshold {
        name: "q8_rows",
        about: "rows up to which products read 8-bit activations",
        within: 0..=2048,
        field: |t| &mut t.q8_rows,
    },
    Threshold {
        name: "tile64_rows",
        about: "rows up to which cooperative tiles are small",
        within: 0..=512,
        field: |t| &mut t.tile64_rows,
    },
    Threshold {
        name: "decode_keys",
        about: "context length up to which attention of one row is one kernel (heads of 128)",
        within: 0..=2048,
        field: |t| &mut t.decode_keys,
    },
    Threshold {
        name: "split_workgroups",
        about: "workgroups that share attention over a long context",
        within: 1..=4096,
        field: |t| &mut t.split_workgroups,
    },
    Threshold {
        name: "norm_columns",
        about: "columns per row of the weight up to which a product computes the norm after it",
        within: 0..=16,
        field: |t| &mut t.norm_columns,
    },
    Threshold {
        name: "glu_columns",
        about: "columns up to which a gated pair of products is one kernel",
        within: 0..=65_536,
        field: |t| &mut t.glu_columns,
    },
    Threshold {
        name: "vec_columns",
        about: "columns above which more threads share a row of a weight",
        within: 0..=65_536,
        field: |t| &mut t.vec_columns,
    },
    Threshold {
        name: "prologue_columns",
        about: "columns up to which products pack the row that they read",
        within: 0..=1536,
        field: |t| &mut t.prologue_columns,
    },
    Threshold {
        name: "glu_prologue_columns",
        about: "columns up to which gated products pack the row that they read",
        within: 0..=1024,
        field: |t| &mut t.glu_prologue_columns,
    },
    Threshold {
        name: "window_keys",
        about: "position from which on attention over a window is split into parts",
        within: 1..=512,
        field: |t| &mut t.window_keys,
    },
    Threshold {
        name: "workgroups",
        about: "workgroups that run at the same time",
        within: 1..=1024,
        field: |t| &mut t.workgroups,
    },
    Threshold {
        name: "chunk",
        about: "prompt rows that are evaluated together",
        within: 512..=2048,
        field: |t| &mut t.chunk,
    },
];

impl Threshold {
    /// The threshold with this name.
    ///
    /// # Panics
    /// When no threshold has this name.
    #[must_use]
    pub fn named(name: &str) -> &'static Self {
        THRESHOLDS.iter().find(|threshold| threshold.name == name).unwrap_or_else(|| panic!("no threshold {name}"))
    }

    /// The number that a table has for this threshold.
    #[must_use]
    pub fn of(&self, mut table: Table) -> u32 {
        *(self.field)(&mut table)
    }

    /// The table with this threshold set to `value`, clamped to [`Threshold::within`].
    #[must_use]
    pub fn set(&self, mut table: Table, value: u32) -> Table {
        *(self.field)(&mut table) = value.clamp(*self.within.start(), *self.within.end());
        table
    }
}

/// First line of a file: the version of the format. It changes when thresholds are added, removed
/// or redefined.
const FORM: &str = "weft table 2";

impl Table {
    /// The default for a class of adapters, with or without cooperative matrices.
    ///
    /// All numbers were measured on one NVIDIA H200 with 132 multiprocessors.
    ///
    /// `q8_rows` and `tile64_rows`, with layers of 4096 x 12288: 8 rows take 36 us in 8 bits and 35
    /// us in small tiles. 32 rows take 44 us in small tiles, 123 us in 8 bits and 127 us in large
    /// tiles.
    ///
    /// `norm_columns`: a product of 12288 columns and 4096 rows gains from computing the norm; one
    /// of 8960 columns and 1536 rows loses. `glu_columns`: gate and up of 4096 columns run at 157
    /// TFLOP/s as one kernel and at 200 TFLOP/s as two. `vec_columns`: 1536 rows of 12288 columns
    /// take 8.3 us with 32 threads to a row and 7.0 with 128 in Q4_K, 11.2 and 9.1 in Q6_K. A token
    /// of a model with 8960 columns takes 1.4% less with 192 threads than with 128. With the norm
    /// after the product, twice as many threads take 7% (Q4_K) and 9% (Q6_K) less time for 4096 and
    /// 12288 columns, and 13% more for 1536 columns.
    ///
    /// `prologue_columns`: three products that pack their row gain 1.7 us of 32 at 1024 columns and
    /// 2.2 us of 36 at 1536 columns; they lose at 4096. `glu_prologue_columns`: gated products of
    /// 3072 results gain 4 us of 32 at 1024 columns; with 8960 results of 1536 columns they lose 2
    /// us.
    ///
    /// `window_keys`, for 8 heads of 256 that share their keys, at 512 keys: a layer takes 15.0 us
    /// as one kernel and a product, and 10.5 us as parts that the product joins. Below 128 keys it
    /// takes 10.6 us and 10.9 us. `decode_keys`: both ways take 15 us at about 600 keys of 8 heads
    /// of 128, and at half as many keys of heads of 256. A layer of 8 rows of Qwen3-8B, each of
    /// another sequence, takes 17.5 us as one kernel and 27.0 us as three at 512 keys, 25.9 and
    /// 33.8 at 1024, 39.8 and 43.4 at 1900. The operations before and after cost as much for 2 rows
    /// as for 8.
    ///
    /// `q8_rows` without cooperative matrices: Qwen3-8B reads 675 and 1,531 tokens a second of
    /// prompts of 64 and 512 if more than 32 rows are multiplied in f32, and 3,216 and 3,337 if all
    /// rows are in 8 bits.
    ///
    /// Other classes of hardware were not measured: `weft tune` measures the device at hand.
    /// Software adapters use the same numbers, because every kernel is tested on them, although a
    /// separate norm is 4 to 10% faster on llvmpipe. `split_workgroups` is smaller for software: a
    /// part without keys takes as long as a full one, and on two cores 512 workgroups took two
    /// thirds of the time of a small model's token.
    #[must_use]
    pub const fn usual(class: Class, cooperative: bool) -> Self {
        Self {
            q8_rows: match class {
                _ if cooperative => 8,
                Class::Software => 32,
                _ => 2048,
            },
            tile64_rows: 64,
            decode_keys: 512,
            split_workgroups: if matches!(class, Class::Software) { 16 } else { 512 },
            norm_columns: 4,
            glu_columns: 2048,
            vec_columns: USUAL_VEC_COLUMNS,
            prologue_columns: 1536,
            glu_prologue_columns: 1024,
            window_keys: 128,
            workgroups: USUAL_WORKGROUPS,
            chunk: if matches!(class, Class::Discrete) { 2048 } else { 512 },
        }
    }

    /// The table as a file, which [`Table::from_bytes`] reads under the same key.
    #[must_use]
    pub fn to_bytes(&self, key: &str) -> Vec<u8> {
        let mut text = format!("{FORM}\n{key}\n");
        for threshold in &THRESHOLDS {
            let _ = writeln!(text, "{} {}", threshold.name, threshold.of(*self));
        }
        (text + "end\n").into_bytes()
    }

    /// Reads what [`Table::to_bytes`] wrote under this key. Returns `None` when the bytes are
    /// truncated, damaged, of another device, or out of range.
    #[must_use]
    pub fn from_bytes(key: &str, bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.strip_prefix(FORM)?.strip_prefix('\n')?;
        let mut lines = text.strip_prefix(key)?.strip_prefix('\n')?.strip_suffix("end\n")?.lines();
        let mut table = Self::usual(Class::Unknown, false);
        for threshold in &THRESHOLDS {
            let value = lines.next()?.strip_prefix(threshold.name)?.strip_prefix(' ')?.parse().ok()?;
            *(threshold.field)(&mut table) = Some(value).filter(|value| threshold.within.contains(value))?;
        }
        lines.next().is_none().then_some(table)
    }
}
