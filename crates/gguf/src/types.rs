//! The tensor types of ggml: numbers, names and block geometry.

use std::fmt;

macro_rules! ggml_types {
    (
        $($variant:ident = $number:literal, $name:literal, $block:literal elements in $bytes:literal;)*
        @in_memory
        $($memory:ident = $code:literal, $memory_name:literal, $memory_block:literal elements in $memory_bytes:literal;)*
    ) => {
        /// The storage type of a tensor's elements. The numbers are the values of `ggml_type` in
        /// `ggml.h`. NF4 and NF4_DQ, which no file has, are not among them.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum GgmlType {
            $(
                #[doc = concat!("`", $name, "`: ", stringify!($block), " elements in ", stringify!($bytes), " bytes.")]
                $variant = $number,
            )*
            $(
                #[doc = concat!("`", $memory_name, "`: ", stringify!($memory_block), " elements in ", stringify!($memory_bytes), " bytes, in memory only.")]
                $memory = $code,
            )*
        }

        impl GgmlType {
            /// Every type that a file can have, in order of its number.
            pub const ALL: &'static [GgmlType] = &[$(GgmlType::$variant),*];

            /// The types that weights have in memory only.
            pub const IN_MEMORY: &'static [GgmlType] = &[$(GgmlType::$memory),*];

            /// The type with this number. `None` if ggml removed the number or if it is newer than
            /// this crate.
            pub fn from_u32(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(GgmlType::$variant),)*
                    _ => None,
                }
            }

            /// The number in files. `None` for the types of [`GgmlType::IN_MEMORY`].
            pub const fn number(self) -> Option<u32> {
                match self {
                    $(GgmlType::$memory => None,)*
                    ty => Some(ty as u32),
                }
            }

            /// The name that ggml prints, such as `Q4_K`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(GgmlType::$variant => $name,)*
                    $(GgmlType::$memory => $memory_name,)*
                }
            }

            /// Elements per block; 1 for plain numbers.
            pub const fn block_size(self) -> usize {
                match self {
                    $(GgmlType::$variant => $block,)*
                    $(GgmlType::$memory => $memory_block,)*
                }
            }

            /// Bytes per block.
            pub const fn block_bytes(self) -> usize {
                match self {
                    $(GgmlType::$variant => $bytes,)*
                    $(GgmlType::$memory => $memory_bytes,)*
                }
            }
        }
    };
}

ggml_types! {
    F32 = 0, "F32", 1 elements in 4;
    F16 = 1, "F16", 1 elements in 2;
    Q4_0 = 2, "Q4_0", 32 elements in 18;
    Q4_1 = 3, "Q4_1", 32 elements in 20;
    Q5_0 = 6, "Q5_0", 32 elements in 22;
    Q5_1 = 7, "Q5_1", 32 elements in 24;
    Q8_0 = 8, "Q8_0", 32 elements in 34;
    Q8_1 = 9, "Q8_1", 32 elements in 36;
    Q2_K = 10, "Q2_K", 256 elements in 84;
    Q3_K = 11, "Q3_K", 256 elements in 110;
    Q4_K = 12, "Q4_K", 256 elements in 144;
    Q5_K = 13, "Q5_K", 256 elements in 176;
    Q6_K = 14, "Q6_K", 256 elements in 210;
    Q8_K = 15, "Q8_K", 256 elements in 292;
    IQ2_XXS = 16, "IQ2_XXS", 256 elements in 66;
    IQ2_XS = 17, "IQ2_XS", 256 elements in 74;
    IQ3_XXS = 18, "IQ3_XXS", 256 elements in 98;
    IQ1_S = 19, "IQ1_S", 256 elements in 50;
    IQ4_NL = 20, "IQ4_NL", 32 elements in 18;
    IQ3_S = 21, "IQ3_S", 256 elements in 110;
    IQ2_S = 22, "IQ2_S", 256 elements in 82;
    IQ4_XS = 23, "IQ4_XS", 256 elements in 136;
    I8 = 24, "I8", 1 elements in 1;
    I16 = 25, "I16", 1 elements in 2;
    I32 = 26, "I32", 1 elements in 4;
    I64 = 27, "I64", 1 elements in 8;
    F64 = 28, "F64", 1 elements in 8;
    IQ1_M = 29, "IQ1_M", 256 elements in 56;
    BF16 = 30, "BF16", 1 elements in 2;
    TQ1_0 = 34, "TQ1_0", 256 elements in 54;
    TQ2_0 = 35, "TQ2_0", 256 elements in 66;
    MXFP4 = 39, "MXFP4", 32 elements in 17;
    NVFP4 = 40, "NVFP4", 64 elements in 36;
    Q1_0 = 41, "Q1_0", 128 elements in 18;
    @in_memory
    NF4 = 0xffff_ffff, "NF4", 64 elements in 36;
    NF4_DQ = 0xffff_fffe, "NF4_DQ", 256 elements in 136;
}

impl GgmlType {
    /// The type that rows of `cols` elements get where this one is asked for: a row is a whole
    /// number of blocks. llama.cpp's `llama_tensor_get_type` has the same fallbacks: of types with
    /// superblocks of 256, those with blocks of 32, and F16 where these do not fit either.
    #[must_use]
    pub fn fitting(self, cols: usize) -> Self {
        let fits = |ty: Self| cols.is_multiple_of(ty.block_size());
        let smaller = match self {
            Self::IQ1_S | Self::IQ1_M | Self::IQ2_XXS | Self::IQ2_XS | Self::IQ2_S => Self::IQ4_NL,
            Self::IQ3_XXS | Self::IQ3_S | Self::IQ4_XS | Self::Q2_K | Self::Q3_K => Self::IQ4_NL,
            Self::Q4_K => Self::Q5_0,
            Self::Q5_K => Self::Q5_1,
            Self::Q6_K => Self::Q8_0,
            Self::TQ1_0 | Self::TQ2_0 => Self::Q4_0,
            other => other,
        };
        [self, smaller].into_iter().find(|ty| fits(*ty)).unwrap_or(Self::F16)
    }

    /// Size in bytes of a row of `cols` elements. `None` if `cols` is not a multiple of the block
    /// size or the size overflows.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        if !cols.is_multiple_of(self.block_size()) {
            return None;
        }
        (cols / self.block_size()).checked_mul(self.block_bytes())
    }

    /// The type of files with this name; upper and lower case are equal.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|ty| ty.name().eq_ignore_ascii_case(name))
    }

    /// True if the elements are stored in blocks with scales, false if they are plain numbers.
    pub const fn is_quantized(self) -> bool {
        self.block_size() > 1
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_finds_its_type_and_the_gaps_find_none() {
        for &ty in GgmlType::ALL {
            assert_eq!(ty.number().and_then(GgmlType::from_u32), Some(ty));
            assert_eq!(GgmlType::from_name(&ty.name().to_lowercase()), Some(ty));
        }
        for gap in [4, 5, 31, 32, 33, 36, 37, 38, 42, u32::MAX] {
            assert_eq!(GgmlType::from_u32(gap), None);
        }
    }

    #[test]
    fn no_number_and_no_name_in_a_file_is_of_a_type_in_memory() {
        for &ty in GgmlType::IN_MEMORY {
            assert_eq!(ty.number(), None);
            assert_eq!(GgmlType::from_u32(ty as u32), None);
            assert_eq!(GgmlType::from_name(ty.name()), None);
            assert!(!GgmlType::ALL.contains(&ty));
        }
    }

    #[test]
    fn rows_that_are_no_superblocks_get_the_fallbacks_of_llama_cpp() {
        use GgmlType::*;
        for (asked, written) in
            [(Q4_K, Q5_0), (Q5_K, Q5_1), (Q6_K, Q8_0), (IQ4_XS, IQ4_NL), (Q2_K, IQ4_NL), (Q3_K, IQ4_NL), (TQ2_0, Q4_0)]
        {
            assert_eq!([512, 96, 100].map(|cols| asked.fitting(cols)), [asked, written, F16], "{asked}");
        }
        assert_eq!([Q8_0.fitting(96), Q8_0.fitting(100), F32.fitting(1), BF16.fitting(3)], [Q8_0, F16, F32, BF16]);
        for &ty in GgmlType::ALL {
            assert!((1..600).all(|cols| ty.fitting(cols).row_bytes(cols).is_some()), "{ty}");
        }
    }

    #[test]
    fn row_bytes_refuses_partial_blocks_and_overflow() {
        assert_eq!(GgmlType::Q4_K.row_bytes(512), Some(288));
        assert_eq!(GgmlType::Q4_K.row_bytes(0), Some(0));
        assert_eq!(GgmlType::Q4_K.row_bytes(257), None);
        assert_eq!(GgmlType::F64.row_bytes(usize::MAX), None);
    }
}
