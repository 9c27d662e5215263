//! Weight formats on the GPU: the WGSL piece that reads each type, and the layout of its rows in a
//! buffer.
//!
//! A weight buffer starts with the format's table (a codebook that is too large for registers),
//! followed by its rows, all in u32 words. A row whose blocks are whole 16-byte units keeps its
//! blocks as in the file. Any other row is stored in planes: the quants of all blocks, then all
//! scales, then all `d`, so that every word that a piece reads is aligned. Every row is padded to
//! 16 bytes.

use gguf::GgmlType;

/// The contents of pieces in `shaders/quant/`, one after the other.
macro_rules! quant {
    ($($file:literal)+) => { concat!($(wgsl!("quant/" $file ".wgsl"), "\n"),+) };
}

mod how;
mod table;

pub use how::How;
pub use table::{FORMATS, USUAL, set_scales};

/// The layout of a weight type in a GPU buffer, and the WGSL that reads it.
#[derive(Debug)]
pub struct Format {
    /// The type in the file, or one in memory, which is made of plain numbers while they load.
    pub ty: GgmlType,
    /// `W_row` and `W_load4` read four elements as floats, over a binding `W: array<vec4<u32>>`.
    pub elements: &'static str,
    /// The parts that a row keeps, in the order of its planes: (offset in the file's block, bytes).
    /// Empty if blocks stay whole.
    pub planes: &'static [(usize, usize)],
    table: &'static [u32],
    /// Whether an element is its quant times the one scale of 32 elements.
    scale_alone: bool,
    /// The pieces that read many elements at once.
    pub units: Option<Units>,
    /// The pieces that read 32 weights of 16 bits for tiles of up to 64 rows (`units/tile64.wgsl`).
    /// Such formats need no units, because their weights are floats already.
    halves: Option<&'static str>,
    /// `W_load8` reads eight elements as floats, after every thread has called `W_begin`.
    eights: &'static str,
    /// `W_part` is a thread's part of the products of four rows with f32 activations.
    part: &'static str,
    /// `W_add` adds a thread's part of the products of four rows with staged activations
    /// (`matmul/pieces/acts_staged.wgsl`). `None` for formats that `W_part` multiplies as fast.
    teams: Option<&'static str>,
}

/// The pieces of a format with units, over a binding `W`.
#[derive(Copy, Clone, Debug)]
pub struct Units {
    /// `W_halves` and `W_unit` read 32 elements (`shared/unit.wgsl`).
    pub unit: &'static str,
    /// `W_steps` and `W_step` multiply two rows with 8-bit activations (`shared/dot_q8.wgsl`).
    /// `W_lane_unit` is the part of a row that one thread takes, with `W_lane_halves` and
    /// `W_lane_dot`. `None` for formats that only tiles read in units: few rows keep their f32
    /// activations.
    pub step: Option<&'static str>,
    /// `W_raw` loads 32 elements for the tiles of cooperative matrices
    /// (`matmul/pieces/tile128_groups.wgsl`).
    pub groups: &'static str,
    /// `W_begin` and `W_store` stage these 32 elements.
    pub store: &'static str,
    /// `W_ab` and `W_cd` read one thread's part of four rows (`matmul/pieces/rows8_sums.wgsl`), if
    /// 32 neighbouring threads share a subgroup.
    pub rows: &'static str,
    /// `W_begin`, `W_ready` and `W_eight` unpack a unit in two halves for tiles of up to 96 rows
    /// (`units/tile64.wgsl`).
    pub ready: &'static str,
}

/// [`Units::rows`] without exchange between threads: for formats whose rows share nothing, and for
/// all formats if subgroups are smaller than 32.
const USUAL_ROWS: &str = quant!("units/rows");

/// The sums of a workgroup with the rows of a weight, for every format.
const ROWS_SUMS: &str = quant!("units/rows_sums");

/// [`Format::part`] of formats without a piece of their own.
const PART: &str = quant!("eights/rows");

/// [`Units::ready`] of formats without a piece of their own.
const READY: &str = quant!("units/ready" "units/begin");

/// [`Units::store`] of formats without a piece of their own.
const STORE: &str = quant!("units/store" "units/begin");

/// `W_begin`, `W_held`, `W_ready` and `W_eight` of formats without units that are not of 16 bits.
const LOADS: &str = quant!("units/loads" "units/begin");

/// `W_tile64` multiplies a tile of rows with rows of a weight through cooperative matrices
/// (`matmul/pieces/tile64_tiles.wgsl`).
const TILE64: &str = quant!("units/tile64");

/// Whether kernels read weights of this type.
#[must_use]
pub fn reads(ty: GgmlType) -> bool {
    format(ty).is_some()
}

/// The format of a type, or `None` if no kernel reads weights of this type (F64 and the integers).
#[must_use]
pub fn format(ty: GgmlType) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.ty == ty)
}

impl Format {
    /// The pieces of the second of two weights of this format, whose types are those of the first:
    /// `W_raw` for tiles of 128 and `W_held` for smaller ones. `None` if the format has neither.
    #[must_use]
    pub fn second(&self) -> Option<String> {
        let units = self.units.map(|units| [units.unit, units.groups].concat());
        Some(self.elements.to_string() + &units.or(self.halves.map(str::to_string))?)
    }

    /// The pieces that multiply one row of f32 activations, four rows of the weight at a time.
    #[must_use]
    pub fn eights(&self) -> String {
        [self.elements, self.eights, self.part].concat()
    }

    /// The pieces that multiply one row of staged activations, four rows of the weight at a time.
    /// `None` if no kernel of teams reads the format.
    #[must_use]
    pub fn teams(&self) -> Option<String> {
        Some([self.elements, self.eights, self.teams?].concat())
    }

    /// Whether few rows are multiplied in 8 bits.
    #[must_use]
    pub fn in_8_bits(&self) -> bool {
        self.units.is_some_and(|units| units.step.is_some())
    }

    /// Whether an element is its quant times the one scale of 32 elements: products in 8 bits then
    /// have neither a minimum nor the middle of the quants to subtract.
    #[must_use]
    pub fn is_scale_alone(&self) -> bool {
        self.scale_alone
    }

    /// Whether the format has floats of 16 bits.
    pub fn is_halves(&self) -> bool {
        self.units.is_none() && self.tiles().is_some()
    }

    /// The pieces that multiply tiles of up to 64 rows, or `None` if none reads the format.
    #[must_use]
    pub fn tiles(&self) -> Option<String> {
        Some(self.second()? + self.units.map_or("", |units| units.ready) + TILE64)
    }

    /// The pieces that stage 32 columns in halves of 16, as [`Format::tiles`] does, of any format.
    #[must_use]
    pub fn staged(&self) -> String {
        let usual = || [self.elements, LOADS].concat();
        self.second().map_or_else(usual, |second| second + self.units.map_or("", |units| units.ready))
    }

    /// Words at the start of every buffer of this type: its codebook, or nothing. Their number is a
    /// multiple of 4.
    #[must_use]
    pub fn table(&self) -> &'static [u32] {
        self.table
    }

    /// Words of one row of `cols` elements, padded to 16 bytes; `cols` is a multiple of the block
    /// size.
    #[must_use]
    pub fn row_words(&self, cols: u32) -> u32 {
        let kept: usize = self.planes.iter().map(|&(_, bytes)| bytes).sum();
        let block_bytes = if self.planes.is_empty() { self.ty.block_bytes() } else { kept };
        let bytes = cols as usize / self.ty.block_size() * block_bytes;
        (bytes.next_multiple_of(16) / 4) as u32
    }

    /// Words of a buffer that holds the table and `rows` rows of `cols` elements.
    #[must_use]
    pub fn buffer_words(&self, rows: u32, cols: u32) -> u64 {
        self.table.len() as u64 + u64::from(rows) * u64::from(self.row_words(cols))
    }

    /// Whether rows of `cols` elements have the same bytes on a device as in a file.
    #[must_use]
    pub fn keeps_rows(&self, cols: u32) -> bool {
        self.planes.is_empty() && self.ty.row_bytes(cols as usize) == Some(self.row_words(cols) as usize * 4)
    }

    /// Writes one row in the layout that the piece reads. `src` is the row's blocks in the file,
    /// `dst` its `row_words` words as little-endian bytes; every byte of `dst` is written. Panics
    /// if either has another size.
    pub fn relay_row(&self, cols: u32, src: &[u8], dst: &mut [u8]) {
        assert_eq!(Some(src.len()), self.ty.row_bytes(cols as usize), "source row of {} elements of {}", cols, self.ty);
        assert_eq!(dst.len(), self.row_words(cols) as usize * 4, "device row of {} elements of {}", cols, self.ty);
        let mut at = 0;
        if self.planes.is_empty() {
            dst[..src.len()].copy_from_slice(src);
            at = src.len();
        }
        for &(offset, bytes) in self.planes {
            for block in src.chunks_exact(self.ty.block_bytes()) {
                dst[at..at + bytes].copy_from_slice(&block[offset..offset + bytes]);
                at += bytes;
            }
        }
        dst[at..].fill(0);
    }
}

/// One block of random codes whose values have a magnitude of about 1, for tests and benches.
/// `bits` returns 64 random bits. Panics for types without blocks.
pub fn random_block(ty: GgmlType, bits: &mut impl FnMut() -> u64) -> Vec<u8> {
    assert!(ty.is_quantized(), "{ty} has no blocks");
    let mut block: Vec<u8> = (0..ty.block_bytes()).map(|_| bits() as u8).collect();
    set_scales(ty, &mut block, || 1.0);
    let mut values = vec![0.0f32; ty.block_size()];
    gguf::dequantize(ty, &block, &mut values).expect("one whole block");
    let largest = values.iter().fold(1.0f32, |most, value| most.max(value.abs()));
    set_scales(ty, &mut block, || ((bits() >> 40) as f32 / (1 << 23) as f32 - 1.0) / largest);
    block
}
