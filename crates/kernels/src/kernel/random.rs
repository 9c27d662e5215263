//! A seeded source of shapes, values and weights, for parity cases and for measurements.

use super::format::{FORMATS, Format};
use gguf::GgmlType;

/// A seeded source of shapes and values that prefers edge cases.
pub struct Gen {
    state: u64,
    only: Option<GgmlType>,
}

impl Gen {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed ^ 0x9e37_79b9_7f4a_7c15, only: None }
    }

    /// The same source, whose [`Gen::format`] always returns this format.
    #[must_use]
    pub fn only(self, format: Option<GgmlType>) -> Self {
        Self { only: format, ..self }
    }

    /// 64 random bits (SplitMix64, Steele et al. 2014).
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn coin(&mut self) -> bool {
        self.bits() & 1 == 1
    }

    /// One of these values.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.bits() % from.len() as u64) as usize]
    }

    /// A length at the edges of workgroups: 1, WG - 1, WG, WG + 1, a prime, a large one.
    pub fn dim(&mut self) -> u32 {
        self.pick(&[1, 4, 31, 63, 64, 65, 97, 128, 255, 256, 257, 1021, 2048])
    }

    /// A few rows.
    pub fn small(&mut self) -> u32 {
        self.pick(&[1, 1, 2, 3, 5, 26])
    }

    /// Any weight format.
    pub fn format(&mut self) -> GgmlType {
        let n = self.bits() as usize % FORMATS.len();
        self.only.unwrap_or(FORMATS[n].ty)
    }

    /// Any weight format that satisfies `wanted`.
    pub fn format_with(&mut self, wanted: impl Fn(&Format) -> bool) -> GgmlType {
        let among: Vec<_> = FORMATS.iter().filter(|f| wanted(f)).map(|f| f.ty).collect();
        let any = self.pick(&among);
        self.only.unwrap_or(any)
    }

    /// A row length that this format can have: whole blocks, or any length for formats without
    /// blocks.
    pub fn cols(&mut self, ty: GgmlType) -> u32 {
        let block = ty.block_size() as u32;
        if block == 1 { self.dim() } else { block * self.pick(&[1, 2, 3, 5, 8, if block == 32 { 16 } else { 8 }]) }
    }

    /// Uniform in [-1, 1).
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Values of one of several kinds: ordinary, tiny, large, all equal, with outliers.
    pub fn values(&mut self, n: usize) -> Vec<f32> {
        let kind = self.pick(&[0, 0, 0, 1, 2, 3, 4]);
        let equal = self.unit();
        let value = |g: &mut Self| match kind {
            0 => 2.0 * g.unit(),
            1 => 1e-4 * g.unit(),
            2 => 1e3 * g.unit(),
            3 => equal,
            _ => g.unit() * if g.bits().is_multiple_of(61) { 300.0 } else { 1.0 },
        };
        (0..n).map(|_| value(self)).collect()
    }

    /// The bytes of a random weight: valid blocks with random codes and values of ordinary size.
    pub fn weight(&mut self, ty: GgmlType, rows: u32, cols: u32) -> Vec<u8> {
        let n = rows as usize * cols as usize;
        if ty.is_quantized() {
            return (0..n / ty.block_size()).flat_map(|_| crate::kernel::format::random_block(ty, &mut || self.bits())).collect();
        }
        let values: Vec<f32> = (0..n).map(|_| self.unit()).collect();
        gguf::quantize(ty, &values, cols as usize).expect("finite values")
    }
}
