//! The table by which kernels are chosen: measured thresholds, by class of adapter or of the adapter at hand.

#[cfg(test)]
mod tests;

use crate::caps::Class;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Where one kernel takes over from another. Whatever the numbers are, within their [`Threshold::within`], each kernel is correct where it serves: a
/// table changes times, and which of the roundings that [`PlanOptions::fast`](crate::PlanOptions::fast) allows is taken, nothing else.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Rows of activations up to which a product with a quantized weight reads 8-bit activations.
    pub q8_rows: u32,
    /// Rows up to which cooperative matrices multiply in tiles of 16, 32 or 64 rows (`matmul_tile64`), from there on in those of 128 (`matmul_tile128`).
    pub tile64_rows: u32,
    /// Keys of heads of 128, and of whole heads of 256, up to which attention of one row is one kernel (`attention_decode`), from there on parts with a join
    /// (`attention_split`); half as many of others of 256 and of 512, (rows + 1) / 2 times as many of several rows, each of another sequence, and 2048 at most.
    pub decode_keys: u32,
    /// Workgroups among which attention of few rows over many keys is split.
    pub split_workgroups: u32,
    /// Columns per row of a weight up to which its product of one row does the sum and the norm behind it, too.
    pub norm_columns: u32,
    /// Columns up to which two products and their gated activation are one kernel of cooperative matrices.
    pub glu_columns: u32,
    /// Columns above which many threads share a row of a weight in products of one row, and from which on twice as many do where a norm is behind.
    pub vec_columns: u32,
    /// Columns up to which every workgroup of a group of products packs the row that it reads, which else is a dispatch of its own.
    pub prologue_columns: u32,
    /// The same of a gated pair of products.
    pub glu_prologue_columns: u32,
    /// Positions from which on attention of one row over a window is in parts that the output product joins.
    pub window_keys: u32,
    /// Workgroups that the device runs side by side. Products and attention of several rows take kernels of more and smaller workgroups where there would
    /// be fewer than this, or than some times this.
    pub workgroups: u32,
    /// Rows of a prompt that are evaluated together at most, memory allowing.
    pub chunk: u32,
}

/// One number of a [`Table`]: its name, what it says, and what it may be.
#[derive(Debug)]
pub struct Threshold {
    pub name: &'static str,
    pub about: &'static str,
    /// Those for which parity cases hold the kernels to their oracles.
    pub within: RangeInclusive<u32>,
    field: fn(&mut Table) -> &mut u32,
}

/// The usual numbers that parity cases draw sizes around.
pub(crate) const USUAL_WORKGROUPS: u32 = 128;
pub(crate) const USUAL_VEC_COLUMNS: u32 = 4096;

/// Every number of a table, in the order of its file.
pub static THRESHOLDS: [Threshold; 12] = [
    Threshold { name: "q8_rows", about: "rows up to which products read 8-bit activations", within: 0..=32, field: |t| &mut t.q8_rows },
    Threshold { name: "tile64_rows", about: "rows up to which cooperative tiles are small", within: 0..=64, field: |t| &mut t.tile64_rows },
    Threshold {
        name: "decode_keys",
        about: "keys of heads of 128 up to which attention is one kernel",
        within: 0..=2048,
        field: |t| &mut t.decode_keys,
    },
    Threshold {
        name: "split_workgroups",
        about: "workgroups that share the keys of long contexts",
        within: 1..=4096,
        field: |t| &mut t.split_workgroups,
    },
    Threshold {
        name: "norm_columns",
        about: "columns per row up to which a product does the norm behind it",
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
        about: "columns above which many threads share a row of a weight",
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
        about: "columns up to which gated products do so",
        within: 0..=1024,
        field: |t| &mut t.glu_prologue_columns,
    },
    Threshold {
        name: "window_keys",
        about: "positions from which on a window is attended to in parts",
        within: 1..=512,
        field: |t| &mut t.window_keys,
    },
    Threshold { name: "workgroups", about: "workgroups that run side by side", within: 1..=1024, field: |t| &mut t.workgroups },
    Threshold { name: "chunk", about: "rows of a prompt that go together", within: 512..=2048, field: |t| &mut t.chunk },
];

impl Threshold {
    /// The threshold of this name.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn named(name: &str) -> &'static Self {
        THRESHOLDS.iter().find(|threshold| threshold.name == name).unwrap_or_else(|| panic!("no threshold {name}"))
    }

    /// What a table says.
    #[must_use]
    pub fn of(&self, mut table: Table) -> u32 {
        *(self.field)(&mut table)
    }

    /// The table with another number, brought within [`Threshold::within`].
    #[must_use]
    pub fn set(&self, mut table: Table, value: u32) -> Table {
        *(self.field)(&mut table) = value.clamp(*self.within.start(), *self.within.end());
        table
    }
}

/// Begins a file: its form, which is another when thresholds come, go or change their meaning.
const FORM: &str = "weft table 2";

impl Table {
    /// What serves adapters of a class, those with cooperative matrices apart.
    ///
    /// All of it was measured on one NVIDIA H200. Its layers of 4096 x 12288: 8 rows take 36 us in 8 bits and 35 in small tiles, 32 rows 44 in
    /// small tiles, 123 in 8 bits and 127 in large ones; 12288 columns of 4096 rows gain from doing the norm, 8960 of 1536 lose; gate and up of
    /// 4096 columns multiply at 157 TFLOP/s as one kernel and at 200 as two. 1536 rows of 12288 columns take 8.3 us by 32 threads to a row and 7.0 by 128. Three
    /// products that pack their row gain 1.7 us of 32 at 1024 columns and 2.2 of 36 at 1536, and lose at 4096; gated products of 3072 results of 1024 columns gain
    /// 4 us of 32, 8960 of 1536 lose 2. With 8 heads of 256 that share their keys a layer takes 15.0 us at 512 keys as one kernel and a product and 10.5 as parts that
    /// the product joins, 10.6 and 10.9 below 128. It has 132 multiprocessors. Attention takes 15 us both ways at some 600 keys of 8 heads of 128,
    /// and at half as many of 256.
    /// Nobody has such numbers of another class of hardware: `weft tune` makes them. Software keeps these too, though a norm by itself is 4 to 10%
    /// faster on llvmpipe: it is where every kernel is tested. But it takes as long for a part of keys that holds none as for a full one: of two cores,
    /// 512 workgroups took two thirds of a small model's token.
    #[must_use]
    pub const fn usual(class: Class, cooperative: bool) -> Self {
        Self {
            q8_rows: if cooperative { 8 } else { 32 },
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

    /// For a file, to be read by [`Table::from_bytes`] under the same key.
    #[must_use]
    pub fn to_bytes(&self, key: &str) -> Vec<u8> {
        let mut text = format!("{FORM}\n{key}\n");
        for threshold in &THRESHOLDS {
            let _ = writeln!(text, "{} {}", threshold.name, threshold.of(*self));
        }
        (text + "end\n").into_bytes()
    }

    /// What [`Table::to_bytes`] made under this key; none of bytes that are cut, damaged, of another device, or out of bounds.
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
