//! The weight formats, by family, each with what differs from the usual pieces.

use super::{Format, PART, READY, STORE, USUAL_ROWS, Units};
use gguf::GgmlType;
use gguf::quants::tables::{
    IQ1_GRID, IQ2_S_GRID, IQ2_VALUES, IQ2_XS_GRID, IQ2_XXS_GRID, IQ3_S_GRID, IQ3_XXS_GRID, IQ3_XXS_VALUES, NF4_VALUES,
};
use half::f16;

/// The type of most weights in most files.
#[allow(dead_code, reason = "only the probes of native hosts have weights of this type")]
pub const USUAL: GgmlType = GgmlType::Q4_K;

/// A format whose blocks stay whole, without codebook and without units.
const FORMAT: Format = Format {
    ty: GgmlType::F32,
    elements: "",
    planes: &[],
    table: &[],
    scale_alone: false,
    units: None,
    halves: None,
    eights: quant!("eights/quads" "eights/four" "eights/begin"),
    part: PART,
    teams: None,
};

/// Units that only tiles of 128 read, with the usual pieces.
const UNITS: Units = Units { unit: "", step: None, groups: "", store: STORE, rows: USUAL_ROWS, ready: READY };

/// Every format.
pub static FORMATS: &[Format] = &[
    Format { ty: GgmlType::F32, elements: quant!("f32"), ..FORMAT },
    Format {
        ty: GgmlType::F16,
        elements: quant!("f16"),
        eights: quant!("eights/f16" "eights/stored" "eights/four" "eights/begin"),
        halves: Some(quant!("eights/f16" "units/halves" "units/begin")),
        ..FORMAT
    },
    Format {
        ty: GgmlType::BF16,
        elements: quant!("bf16"),
        eights: quant!("eights/bf16" "eights/stored" "eights/four" "eights/begin"),
        halves: Some(quant!("eights/bf16" "units/halves" "units/begin")),
        ..FORMAT
    },
    Format { ty: GgmlType::Q1_0, elements: quant!("q1_0" "shared/word"), planes: &[(2, 16), (0, 2)], ..FORMAT },
    Format {
        ty: GgmlType::Q4_0,
        elements: quant!("q4_0" "shared/word"),
        planes: &[(2, 16), (0, 2)],
        units: Some(Units {
            unit: quant!("units/q4_0" "units/held"),
            step: Some(quant!("units/step")),
            groups: quant!("units/groups"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format {
        ty: GgmlType::Q4_1,
        elements: quant!("q4_1" "shared/word"),
        planes: &[(4, 16), (0, 4)],
        units: Some(Units {
            unit: quant!("units/q4_1" "units/held"),
            step: Some(quant!("units/step")),
            groups: quant!("units/groups"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format {
        ty: GgmlType::Q5_0,
        elements: quant!("q5_0" "shared/word"),
        planes: &[(6, 16), (2, 4), (0, 2)],
        units: Some(Units {
            unit: quant!("units/q5_0" "units/held" "units/fifth"),
            step: Some(quant!("units/step")),
            groups: quant!("units/groups"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format {
        ty: GgmlType::Q5_1,
        elements: quant!("q5_1" "shared/word"),
        planes: &[(8, 16), (4, 4), (0, 4)],
        units: Some(Units {
            unit: quant!("units/q5_1" "units/held" "units/fifth"),
            step: Some(quant!("units/step")),
            groups: quant!("units/groups"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format {
        ty: GgmlType::Q8_0,
        elements: quant!("q8_0" "shared/word"),
        planes: &[(2, 32), (0, 2)],
        scale_alone: true,
        units: Some(Units {
            unit: quant!("units/q8_0" "units/held"),
            step: Some(quant!("units/q8_0_step")),
            groups: quant!("units/groups"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format { ty: GgmlType::Q8_1, elements: quant!("q8_1" "shared/word"), planes: &[(4, 32), (0, 2)], ..FORMAT },
    Format {
        ty: GgmlType::Q2_K,
        elements: quant!("q2_k" "shared/word"),
        planes: &[(16, 64), (0, 16), (80, 4)],
        ..FORMAT
    },
    Format {
        ty: GgmlType::Q3_K,
        elements: quant!("q3_k" "shared/word"),
        planes: &[(32, 64), (0, 32), (96, 12), (108, 2)],
        ..FORMAT
    },
    Format {
        ty: GgmlType::Q4_K,
        elements: quant!("q4_k" "shared/word" "shared/scale_min"),
        units: Some(Units {
            unit: quant!("units/q4_k" "units/scale_mins"),
            step: Some(quant!("units/wide_step")),
            groups: quant!("units/q4_k_groups"),
            rows: quant!("units/q4_k_rows"),
            ready: quant!("units/q4_k_ready" "units/begin"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format {
        ty: GgmlType::Q5_K,
        elements: quant!("q5_k" "shared/word" "shared/scale_min"),
        units: Some(Units {
            unit: quant!("units/q5_k" "units/scale_mins"),
            step: Some(quant!("units/wide_step")),
            groups: quant!("units/q5_k_groups"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format {
        ty: GgmlType::Q6_K,
        elements: quant!("q6_k" "shared/word"),
        planes: &[(0, 128), (128, 64), (192, 16), (208, 2)],
        units: Some(Units {
            unit: quant!("units/q6_k"),
            step: Some(quant!("units/q6_k_step")),
            groups: quant!("units/q6_k_groups"),
            rows: quant!("units/q6_k_rows"),
            ready: quant!("units/q6_k_ready" "units/begin"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format { ty: GgmlType::Q8_K, elements: quant!("q8_k" "shared/word"), planes: &[(4, 256), (0, 4)], ..FORMAT },
    Format {
        ty: GgmlType::IQ1_S,
        elements: quant!("iq1_s" "shared/word"),
        planes: &[(2, 32), (34, 16), (0, 2)],
        table: &IQ1_TABLE,
        ..FORMAT
    },
    Format {
        ty: GgmlType::IQ1_M,
        elements: quant!("iq1_m" "shared/word"),
        planes: &[(0, 32), (32, 16), (48, 8)],
        table: &IQ1_TABLE,
        ..FORMAT
    },
    Format {
        ty: GgmlType::IQ2_XXS,
        elements: quant!("iq2_xxs" "shared/word" "shared/signs"),
        planes: &[(2, 64), (0, 2)],
        table: &IQ2_XXS_TABLE,
        ..FORMAT
    },
    Format {
        ty: GgmlType::IQ2_XS,
        elements: quant!("iq2_xs" "shared/word" "shared/signs"),
        planes: &[(2, 64), (66, 8), (0, 2)],
        table: &IQ2_XS_TABLE,
        ..FORMAT
    },
    Format {
        ty: GgmlType::IQ2_S,
        elements: quant!("iq2_s" "shared/word" "shared/signs"),
        planes: &[(2, 64), (66, 8), (74, 8), (0, 2)],
        table: &IQ2_S_TABLE,
        ..FORMAT
    },
    Format {
        ty: GgmlType::IQ3_XXS,
        elements: quant!("iq3_xxs" "shared/word" "shared/signs"),
        planes: &[(2, 64), (66, 32), (0, 2)],
        table: &IQ3_XXS_TABLE,
        ..FORMAT
    },
    Format {
        ty: GgmlType::IQ3_S,
        elements: quant!("iq3_s" "shared/word" "shared/signs"),
        planes: &[(2, 64), (66, 8), (74, 32), (106, 4), (0, 2)],
        table: &IQ3_S_TABLE,
        ..FORMAT
    },
    Format {
        ty: GgmlType::IQ4_NL,
        elements: quant!("iq4_nl" "shared/word" "shared/iq4"),
        planes: &[(2, 16), (0, 2)],
        eights: quant!("eights/four" "eights/iq4"),
        part: quant!("eights/iq4_rows"),
        teams: Some(quant!("eights/iq4_teams")),
        units: Some(Units {
            unit: quant!("units/iq4"),
            groups: quant!("units/iq4_groups"),
            store: quant!("units/iq4_store" "units/iq4_table"),
            ready: quant!("units/iq4_ready" "units/iq4_table"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format {
        ty: GgmlType::IQ4_XS,
        elements: quant!("iq4_xs" "shared/word" "shared/iq4"),
        planes: &[(8, 128), (4, 4), (0, 4)],
        eights: quant!("eights/four" "eights/iq4"),
        part: quant!("eights/iq4_rows"),
        teams: Some(quant!("eights/iq4_teams")),
        units: Some(Units {
            unit: quant!("units/iq4"),
            groups: quant!("units/iq4_groups"),
            store: quant!("units/iq4_store" "units/iq4_table"),
            ready: quant!("units/iq4_ready" "units/iq4_table"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format {
        ty: GgmlType::TQ1_0,
        elements: quant!("tq1_0" "shared/word"),
        planes: &[(0, 48), (48, 4), (52, 2)],
        ..FORMAT
    },
    Format { ty: GgmlType::TQ2_0, elements: quant!("tq2_0" "shared/word"), planes: &[(0, 64), (64, 2)], ..FORMAT },
    Format {
        ty: GgmlType::MXFP4,
        elements: quant!("mxfp4" "shared/word" "shared/e2m1"),
        planes: &[(1, 16), (0, 1)],
        scale_alone: true,
        units: Some(Units {
            unit: quant!("units/mxfp4" "units/held"),
            step: Some(quant!("units/step")),
            groups: quant!("units/groups"),
            ..UNITS
        }),
        ..FORMAT
    },
    Format {
        ty: GgmlType::NVFP4,
        elements: quant!("nvfp4" "shared/word" "shared/e2m1"),
        planes: &[(4, 32), (0, 4)],
        ..FORMAT
    },
    Format {
        ty: GgmlType::NF4,
        elements: quant!("nf4" "shared/word"),
        planes: &[(4, 32), (0, 4)],
        table: &NF4_TABLE,
        ..FORMAT
    },
    Format {
        ty: GgmlType::NF4_DQ,
        elements: quant!("nf4_dq" "shared/word"),
        planes: &[(8, 128), (4, 4), (0, 4)],
        table: &NF4_TABLE,
        ..FORMAT
    },
];

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
