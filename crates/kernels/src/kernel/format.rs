//! Weight formats on the GPU: the WGSL piece that reads each type, and the layout of its rows in a
//! buffer.
//!
//! A weight buffer starts with the format's table (a codebook that is too large for registers),
//! followed by its rows, all in u32 words. A row whose blocks are whole 16-byte units keeps its
//! blocks as in the file. Any other row is stored in planes: the quants of all blocks, then all
//! scales, then all `d`, so that every word that a piece reads is aligned. Every row is padded to
//! 16 bytes.

use crate::kernel::compose;
use gguf::GgmlType;
use gguf::quants::tables::{
    IQ1_GRID, IQ2_S_GRID, IQ2_VALUES, IQ2_XS_GRID, IQ2_XXS_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ3_XXS_VALUES, NF4_VALUES,
};
use half::f16;

/// The layout of a weight type in a GPU buffer, and the WGSL that reads it.
#[derive(Debug)]
pub struct Format {
    /// The type in the file, or one in memory, which is made of plain numbers while they load.
    pub ty: GgmlType,
    /// The piece: WGSL that defines `W_row` and `W_load4` over a binding `W: array<vec4<u32>>`.
    pub wgsl: &'static str,
    /// The parts that a row keeps, in the order of its planes: (offset in the file's block, bytes).
    /// Empty if blocks stay whole.
    pub planes: &'static [(usize, usize)],
    table: &'static [u32],
    /// The pieces that read many elements at once.
    pub units: Option<Units>,
    /// The pieces that read 32 weights of 16 bits for tiles of up to 64 rows (`units/tile64.wgsl`).
    /// Such formats need no units, because their weights are floats already.
    halves: Option<&'static str>,
    /// `W_load8` reads eight elements as floats, after every thread has called `W_begin`.
    eights: &'static str,
    /// `W_part` is a thread's part of the products of four rows with f32 activations.
    part: &'static str,
    /// `W_add` adds the same of staged activations (`matmul/pieces/acts_staged.wgsl`). `None` for
    /// formats that `W_part` multiplies as fast.
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

/// The contents of pieces in `shaders/quant/`, one after the other.
macro_rules! quant {
    ($($file:literal)+) => { concat!($(wgsl!("quant/" $file ".wgsl"), "\n"),+) };
}

macro_rules! formats {
    ($($ty:ident: [$($file:literal)+], planes $planes:expr, table $table:expr $(, eights [$($eight:literal)+])? $(, read [$($read:literal)+], part [$part:literal], teams [$teams:literal])? $(, units [$($units:literal)+] $(, steps [$step:literal])?, groups [$groups:literal] $(, rows [$rows:literal])? $(, store [$($store:literal)+])? $(, ready [$($ready:literal)+])?)?;)+) => {
        /// Every format, by family.
        pub static FORMATS: &[Format] = &[$(Format {
            ty: GgmlType::$ty,
            wgsl: quant!($($file)+),
            planes: &$planes,
            table: &$table,
            units: formats!(@units $($($units)+ $(, steps $step)?, groups $groups $(, rows $rows)? $(, store $($store)+)? $(, ready $($ready)+)?)?),
            halves: formats!(@halves $($($eight)+)?),
            eights: formats!(@eights $($($eight)+)? $(, $($read)+)?),
            part: formats!(@or PART $(, $part)?),
            teams: formats!(@some $($teams)?),
        }),+];
    };
    (@halves) => { None };
    (@halves $($eight:literal)+) => { Some(quant!($($eight)+ "units/halves" "units/begin")) };
    (@eights) => { quant!("eights/quads" "eights/four" "eights/begin") };
    (@eights $($eight:literal)+) => { quant!($($eight)+ "eights/stored" "eights/four" "eights/begin") };
    (@eights , $($read:literal)+) => { quant!($($read)+) };
    (@units) => { None };
    (@units $($units:literal)+ $(, steps $step:literal)?, groups $groups:literal $(, rows $rows:literal)? $(, store $($store:literal)+)? $(, ready $($ready:literal)+)?) => {
        Some(Units {
            unit: quant!($($units)+),
            step: formats!(@some $($step)?),
            groups: quant!($groups),
            rows: formats!(@or USUAL_ROWS $(, $rows)?),
            store: formats!(@or STORE $(, $($store)+)?),
            ready: formats!(@or READY $(, $($ready)+)?),
        })
    };
    (@some) => { None };
    (@some $own:literal) => { Some(quant!($own)) };
    (@or $usual:ident) => { $usual };
    (@or $usual:ident, $($own:literal)+) => { quant!($($own)+) };
}

formats! {
    F32: ["f32"], planes [], table [];
    F16: ["f16"], planes [], table [], eights ["eights/f16"];
    BF16: ["bf16"], planes [], table [], eights ["eights/bf16"];
    Q1_0: ["q1_0" "shared/word"], planes [(2, 16), (0, 2)], table [];
    Q4_0: ["q4_0" "shared/word"], planes [(2, 16), (0, 2)], table [], units ["units/q4_0" "units/held"], steps ["units/step"], groups ["units/groups"];
    Q4_1: ["q4_1" "shared/word"], planes [(4, 16), (0, 4)], table [], units ["units/q4_1" "units/held"], steps ["units/step"], groups ["units/groups"];
    Q5_0: ["q5_0" "shared/word"], planes [(6, 16), (2, 4), (0, 2)], table [], units ["units/q5_0" "units/held" "units/fifth"], steps ["units/step"], groups ["units/groups"];
    Q5_1: ["q5_1" "shared/word"], planes [(8, 16), (4, 4), (0, 4)], table [], units ["units/q5_1" "units/held" "units/fifth"], steps ["units/step"], groups ["units/groups"];
    Q8_0: ["q8_0" "shared/word"], planes [(2, 32), (0, 2)], table [], units ["units/q8_0" "units/held"], steps ["units/q8_0_step"], groups ["units/groups"];
    Q8_1: ["q8_1" "shared/word"], planes [(4, 32), (0, 2)], table [];
    Q2_K: ["q2_k" "shared/word"], planes [(16, 64), (0, 16), (80, 4)], table [];
    Q3_K: ["q3_k" "shared/word"], planes [(32, 64), (0, 32), (96, 12), (108, 2)], table [];
    Q4_K: ["q4_k" "shared/word" "shared/scale_min"], planes [], table [], units ["units/q4_k" "units/scale_mins"], steps ["units/wide_step"], groups ["units/q4_k_groups"], rows ["units/q4_k_rows"], ready ["units/q4_k_ready" "units/begin"];
    Q5_K: ["q5_k" "shared/word" "shared/scale_min"], planes [], table [], units ["units/q5_k" "units/scale_mins"], steps ["units/wide_step"], groups ["units/q5_k_groups"];
    Q6_K: ["q6_k" "shared/word"], planes [(0, 128), (128, 64), (192, 16), (208, 2)], table [], units ["units/q6_k"], steps ["units/q6_k_step"], groups ["units/q6_k_groups"], rows ["units/q6_k_rows"], ready ["units/q6_k_ready" "units/begin"];
    Q8_K: ["q8_k" "shared/word"], planes [(4, 256), (0, 4)], table [];
    IQ1_S: ["iq1_s" "shared/word"], planes [(2, 32), (34, 16), (0, 2)], table IQ1_TABLE;
    IQ1_M: ["iq1_m" "shared/word"], planes [(0, 32), (32, 16), (48, 8)], table IQ1_TABLE;
    IQ2_XXS: ["iq2_xxs" "shared/word" "shared/signs"], planes [(2, 64), (0, 2)], table IQ2_XXS_TABLE;
    IQ2_XS: ["iq2_xs" "shared/word" "shared/signs"], planes [(2, 64), (66, 8), (0, 2)], table IQ2_XS_TABLE;
    IQ2_S: ["iq2_s" "shared/word" "shared/signs"], planes [(2, 64), (66, 8), (74, 8), (0, 2)], table IQ2_S_TABLE;
    IQ3_XXS: ["iq3_xxs" "shared/word" "shared/signs"], planes [(2, 64), (66, 32), (0, 2)], table IQ3_XXS_TABLE;
    IQ3_S: ["iq3_s" "shared/word" "shared/signs"], planes [(2, 64), (66, 8), (74, 32), (106, 4), (0, 2)], table IQ3_S_TABLE;
    IQ4_NL: ["iq4_nl" "shared/word" "shared/iq4"], planes [(2, 16), (0, 2)], table [], read ["eights/four" "eights/iq4"], part ["eights/iq4_rows"], teams ["eights/iq4_teams"], units ["units/iq4"], groups ["units/iq4_groups"], store ["units/iq4_store" "units/iq4_table"], ready ["units/iq4_ready" "units/iq4_table"];
    IQ4_XS: ["iq4_xs" "shared/word" "shared/iq4"], planes [(8, 128), (4, 4), (0, 4)], table [], read ["eights/four" "eights/iq4"], part ["eights/iq4_rows"], teams ["eights/iq4_teams"], units ["units/iq4"], groups ["units/iq4_groups"], store ["units/iq4_store" "units/iq4_table"], ready ["units/iq4_ready" "units/iq4_table"];
    TQ1_0: ["tq1_0" "shared/word"], planes [(0, 48), (48, 4), (52, 2)], table [];
    TQ2_0: ["tq2_0" "shared/word"], planes [(0, 64), (64, 2)], table [];
    MXFP4: ["mxfp4" "shared/word" "shared/e2m1"], planes [(1, 16), (0, 1)], table [], units ["units/mxfp4" "units/held"], steps ["units/step"], groups ["units/groups"];
    NVFP4: ["nvfp4" "shared/word" "shared/e2m1"], planes [(4, 32), (0, 4)], table [];
    NF4: ["nf4" "shared/word"], planes [(4, 32), (0, 4)], table NF4_TABLE;
    NF4_DQ: ["nf4_dq" "shared/word"], planes [(8, 128), (4, 4), (0, 4)], table NF4_TABLE;
}

static NF4_TABLE: [u32; 16] = float_table(&NF4_VALUES);

static IQ1_TABLE: [u32; 2048] = nibble_table(&IQ1_GRID);

static IQ2_XXS_TABLE: [u32; 512] = byte_table(&IQ2_XXS_GRID, 2, &IQ2_VALUES);

static IQ2_XS_TABLE: [u32; 1024] = byte_table(&IQ2_XS_GRID, 2, &IQ2_VALUES);

static IQ2_S_TABLE: [u32; 2048] = byte_table(&IQ2_S_GRID, 2, &IQ2_VALUES);

static IQ3_XXS_TABLE: [u32; 256] = byte_table(&IQ3_XXS_GRID, 4, &IQ3_XXS_VALUES);

static IQ3_S_TABLE: [u32; 512] = byte_table(&IQ3_S_GRID, 4, &[1, 3, 5, 7, 9, 11, 13, 15]);

/// The bits of floats.
const fn float_table<const N: usize>(values: &[f32; N]) -> [u32; N] {
    let (mut words, mut i) = ([0; N], 0);
    while i < N {
        words[i] = values[i].to_bits();
        i += 1;
    }
    words
}

/// The values of the codes of a codebook, one byte each, in the order of its entries.
const fn byte_table<const ENTRIES: usize, const WORDS: usize>(
    grid: &[u16; ENTRIES],
    code_bits: usize,
    values: &[u8],
) -> [u32; WORDS] {
    let per_entry = 16 / code_bits;
    assert!(ENTRIES * per_entry == WORDS * 4);
    let mut words = [0; WORDS];
    let mut i = 0;
    while i < WORDS * 4 {
        let code = grid[i / per_entry] as usize >> (i % per_entry * code_bits) & ((1 << code_bits) - 1);
        words[i / 4] |= (values[code] as u32) << (i % 4 * 8);
        i += 1;
    }
    words
}

/// The 2-bit codes of a codebook as nibbles, one word per entry: codes 0..3 in the low nibbles of
/// its bytes, codes 4..7 in the high nibbles.
const fn nibble_table<const ENTRIES: usize>(grid: &[u16; ENTRIES]) -> [u32; ENTRIES] {
    let mut words = [0; ENTRIES];
    let mut i = 0;
    while i < ENTRIES * 8 {
        let code = grid[i / 8] >> (i % 8 * 2) & 3;
        words[i / 8] |= (code as u32) << (i % 4 * 8 + i % 8 / 4 * 4);
        i += 1;
    }
    words
}

/// [`Units::rows`] without exchange between threads: for formats whose rows share nothing, and for
/// all formats if subgroups are smaller than 32.
pub const USUAL_ROWS: &str = quant!("units/rows");

/// The sums of a workgroup with the rows of a weight, for every format.
pub const ROWS_SUMS: &str = quant!("units/rows_sums");

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

/// The type of most weights in most files.
#[allow(dead_code, reason = "only the probes of native hosts have weights of this type")]
pub const USUAL: GgmlType = GgmlType::Q4_K;

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
        Some(self.wgsl.to_string() + &units.or(self.halves.map(str::to_string))?)
    }

    /// The pieces that multiply one row of f32 activations, four rows of the weight at a time.
    #[must_use]
    pub fn eights(&self) -> String {
        [self.wgsl, self.eights, self.part].concat()
    }

    /// The same for staged activations, or `None` if no kernel of teams reads the format.
    #[must_use]
    pub fn teams(&self) -> Option<String> {
        Some([self.wgsl, self.eights, self.teams?].concat())
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
        matches!(self.ty, GgmlType::Q8_0 | GgmlType::MXFP4)
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
        let usual = || [self.wgsl, LOADS].concat();
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

    /// The piece for the binding `name`: `W` and `W_*` are renamed to `name` and `name_*`.
    #[must_use]
    pub fn instantiate(&self, name: &str) -> String {
        compose::instantiate(self.wgsl, "W", name)
    }
}

/// Overwrites every floating-point scale and minimum of a block. Each gets the next value, rounded
/// to what the block can hold: MXFP4 keeps only the power of two, and MXFP4 and NVFP4 have no sign.
/// The integer scales and codes stay.
pub fn set_scales(ty: GgmlType, block: &mut [u8], mut next: impl FnMut() -> f32) {
    match ty {
        GgmlType::Q8_K | GgmlType::NF4 | GgmlType::NF4_DQ => block[..4].copy_from_slice(&next().to_le_bytes()),
        GgmlType::MXFP4 => block[0] = (next().to_bits() >> 23) as u8,
        GgmlType::NVFP4 => block[..4].fill_with(|| (f16::from_f32(next() / 256.0).to_bits() >> 7) as u8 & 0x7f),
        GgmlType::IQ1_M => {
            let d = f16::from_f32(next()).to_bits();
            for (i, byte) in [49, 51, 53, 55].into_iter().enumerate() {
                block[byte] = block[byte] & 15 | (d >> (4 * i) << 4) as u8;
            }
        }
        _ => {
            for field in ty.fields().iter().filter(|field| ["d", "dmin", "m"].contains(&field.name)) {
                block[field.offset_bytes..][..2].copy_from_slice(&f16::from_f32(next()).to_le_bytes());
            }
        }
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
