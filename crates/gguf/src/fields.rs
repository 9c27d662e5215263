//! Offsets of the members of each block struct, for code that rearranges blocks (GPU planes).

use crate::GgmlType;

/// One member of a block's struct in `ggml-common.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The member's name in ggml. Some ggml arrays hold two kinds of data (the signs after `qs` in
    /// IQ2_S, the scales and signs after `qs` in IQ3_XXS); here each kind has its own entry.
    pub name: &'static str,
    /// Offset from the start of the block.
    pub offset_bytes: usize,
    /// Size of the whole member, including all array elements.
    pub bytes: usize,
}

/// Places members of the given sizes one after another.
const fn lay<const N: usize>(members: [(&'static str, usize); N]) -> [Field; N] {
    let mut fields = [Field { name: "", offset_bytes: 0, bytes: 0 }; N];
    let (mut i, mut offset_bytes) = (0, 0);
    while i < N {
        let (name, bytes) = members[i];
        fields[i] = Field { name, offset_bytes, bytes };
        offset_bytes += bytes;
        i += 1;
    }
    fields
}

macro_rules! members {
    ($($name:ident: $bytes:literal),*) => {{
        const FIELDS: &[Field] = &lay([$((stringify!($name), $bytes)),*]);
        FIELDS
    }};
}

impl GgmlType {
    /// The members of one block in the order of the file; empty for plain numbers. All are
    /// little-endian.
    pub fn fields(self) -> &'static [Field] {
        use GgmlType::*;
        match self {
            F32 | F16 | BF16 | F64 | I8 | I16 | I32 | I64 => &[],
            Q1_0 => members!(d: 2, qs: 16),
            Q4_0 => members!(d: 2, qs: 16),
            Q4_1 => members!(d: 2, m: 2, qs: 16),
            Q5_0 => members!(d: 2, qh: 4, qs: 16),
            Q5_1 => members!(d: 2, m: 2, qh: 4, qs: 16),
            Q8_0 => members!(d: 2, qs: 32),
            Q8_1 => members!(d: 2, s: 2, qs: 32),
            Q2_K => members!(scales: 16, qs: 64, d: 2, dmin: 2),
            Q3_K => members!(hmask: 32, qs: 64, scales: 12, d: 2),
            Q4_K => members!(d: 2, dmin: 2, scales: 12, qs: 128),
            Q5_K => members!(d: 2, dmin: 2, scales: 12, qh: 32, qs: 128),
            Q6_K => members!(ql: 128, qh: 64, scales: 16, d: 2),
            Q8_K => members!(d: 4, qs: 256, bsums: 32),
            IQ1_S => members!(d: 2, qs: 32, qh: 16),
            IQ1_M => members!(qs: 32, qh: 16, scales: 8),
            IQ2_XXS => members!(d: 2, qs: 64),
            IQ2_XS => members!(d: 2, qs: 64, scales: 8),
            IQ2_S => members!(d: 2, qs: 32, signs: 32, qh: 8, scales: 8),
            IQ3_XXS => members!(d: 2, qs: 64, scales_and_signs: 32),
            IQ3_S => members!(d: 2, qs: 64, qh: 8, signs: 32, scales: 4),
            IQ4_NL => members!(d: 2, qs: 16),
            IQ4_XS => members!(d: 2, scales_h: 2, scales_l: 4, qs: 128),
            TQ1_0 => members!(qs: 48, qh: 4, d: 2),
            TQ2_0 => members!(qs: 64, d: 2),
            MXFP4 => members!(e: 1, qs: 16),
            NVFP4 => members!(d: 4, qs: 32),
            NF4 => members!(d: 4, qs: 32),
            NF4_DQ => members!(d: 4, scales: 4, qs: 128),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::GgmlType;

    #[test]
    fn fields_fill_every_block_exactly() {
        for &ty in GgmlType::ALL.iter().chain(GgmlType::IN_MEMORY) {
            let filled: usize = ty.fields().iter().map(|field| field.bytes).sum();
            assert_eq!(filled, if ty.is_quantized() { ty.block_bytes() } else { 0 }, "{ty}");
        }
    }
}
