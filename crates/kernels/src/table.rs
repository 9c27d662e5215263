//! The table by which rows are chosen: measured thresholds, by class of adapter or of the adapter at hand.

use crate::device::{Class, Device};
use std::fmt::Write;
use std::ops::RangeInclusive;

/// Where one row takes over from another. Whatever the numbers are, within their [`Threshold::within`], each row is correct where it serves: a
/// table changes times, and which of the roundings that [`PlanOptions::fast`](crate::PlanOptions::fast) allows is taken, nothing else.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Rows of activations up to which a product with a quantized weight reads 8-bit activations.
    pub q8_rows: u32,
    /// Rows up to which cooperative matrices multiply in tiles of few rows, from there on in those of 128.
    pub few_rows: u32,
    /// Keys of heads of 128, and of whole heads of 256, up to which attention of one row is one kernel, from there on parts with a join; half as many of
    /// others of 256 and of 512, (rows + 1) / 2 times as many of several rows, each of another sequence, and 2048 at most.
    pub short_keys: u32,
    /// Workgroups among which attention of few rows over many keys is split.
    pub split_workgroups: u32,
    /// Columns per row of a weight up to which its product of one row does the sum and the norm behind it, too.
    pub norm_columns: u32,
    /// Columns up to which two products and their gated activation are one kernel of cooperative matrices.
    pub glu_columns: u32,
    /// Rows of a prompt that are evaluated together at most, memory allowing.
    pub chunk: u32,
}

/// One number of a [`Table`]: its name, what it says, and what it may be.
#[derive(Debug)]
pub struct Threshold {
    pub name: &'static str,
    pub about: &'static str,
    /// Those for which parity cases hold the rows to their oracles.
    pub within: RangeInclusive<u32>,
    field: fn(&mut Table) -> &mut u32,
}

/// Every number of a table, in the order of its file.
pub static THRESHOLDS: [Threshold; 7] = [
    Threshold { name: "q8_rows", about: "rows up to which products read 8-bit activations", within: 0..=32, field: |t| &mut t.q8_rows },
    Threshold { name: "few_rows", about: "rows up to which cooperative tiles are small", within: 0..=64, field: |t| &mut t.few_rows },
    Threshold {
        name: "short_keys",
        about: "keys of heads of 128 up to which attention is one kernel",
        within: 0..=2048,
        field: |t| &mut t.short_keys,
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
const FORM: &str = "weft table 1";

impl Table {
    /// What serves adapters of a class, those with cooperative matrices apart.
    ///
    /// All of it was measured on one NVIDIA H200. Its layers of 4096 x 12288: 8 rows take 36 us in 8 bits and 35 in small tiles, 32 rows 44 in
    /// small tiles, 123 in 8 bits and 127 in large ones; 12288 columns of 4096 rows gain from doing the norm, 8960 of 1536 lose; gate and up of
    /// 4096 columns multiply at 157 TFLOP/s as one kernel and at 200 as two. Attention takes 15 us both ways at some 600 keys of 8 heads of 128,
    /// and at half as many of 256.
    /// Nobody has such numbers of another class of hardware: `weft tune` makes them. Software keeps these too, though a norm by itself is 4 to 10%
    /// faster on llvmpipe: it is where every row is tested. But it takes as long for a part of keys that holds none as for a full one: of two cores,
    /// 512 workgroups took two thirds of a small model's token.
    #[must_use]
    pub const fn usual(class: Class, cooperative: bool) -> Self {
        Self {
            q8_rows: if cooperative { 8 } else { 32 },
            few_rows: 64,
            short_keys: 512,
            split_workgroups: if matches!(class, Class::Software) { 16 } else { 512 },
            norm_columns: 4,
            glu_columns: 2048,
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

impl Device {
    /// The same device with rows chosen by this table.
    #[must_use]
    pub fn with_table(&self, table: Table) -> Self {
        self.with_caps(crate::Caps { table, ..self.caps().clone() })
    }

    /// [`Device::key`], and what of a device decides which rows there are to choose from: a table is good for no other.
    #[must_use]
    pub fn table_key(&self) -> String {
        let caps = self.caps();
        let of = |has: bool, name: &str| if has { format!(", {name}") } else { String::new() };
        let (cooperative, subgroups) = (of(caps.cooperative, "cooperative"), of(caps.subgroups, "subgroups"));
        format!("{}{cooperative}{subgroups}, {} threads, {} buffers", self.key(), caps.max_workgroup, caps.max_storage_buffers)
    }

    /// [`Device::table_key`] as a short name for files.
    #[must_use]
    pub fn table_name(&self) -> String {
        self.short_name(&self.table_key())
    }
}

#[cfg(test)]
mod tests;
