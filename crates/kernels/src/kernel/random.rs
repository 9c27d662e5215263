//! A seeded source of shapes, values and weights, for parity cases and for measurements.

use super::format::{FORMATS, Format};
use gguf::GgmlType;
use std::fmt::Debug;

/// The form of one block of values.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Fill {
    /// Random values.
    #[default]
    Any,
    /// Random values, rounded to quarters.
    Quarters,
    /// A half everywhere.
    Equal,
    /// A half at the indices from the first number to one before the second, zero elsewhere.
    Only(u32, u32),
    /// Zeros. Words are also zero, for example ids and the codes of weights.
    Zero,
}

/// Uniform in [-1, 1).
fn uniform(bits: u64) -> f32 {
    (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// A seeded source of shapes and values that prefers edge cases.
///
/// It draws choices (shapes, rows, kinds) and values. Choices are numbers below a count, and 0 is
/// the simplest. They may be given instead of drawn, and so may the form of each block of values.
/// The random bits advance in the same way in both cases, so a source that is given the choices
/// that it drew makes the same case.
#[derive(Clone, Debug)]
pub struct Gen {
    state: u64,
    only: Option<GgmlType>,
    given: Vec<u32>,
    fills: Vec<Fill>,
    taken: Vec<u32>,
    /// Numbers of values in each block so far.
    blocks: Vec<u32>,
    fill: Fill,
    notes: Option<Vec<String>>,
}

impl Gen {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::given(seed, &[], &[])
    }

    /// A source with this seed, whose first choices and first forms of blocks are given.
    #[must_use]
    pub fn given(seed: u64, choices: &[u32], fills: &[Fill]) -> Self {
        let (given, fills, state) = (choices.to_vec(), fills.to_vec(), seed ^ 0x9e37_79b9_7f4a_7c15);
        Self { state, only: None, given, fills, taken: vec![], blocks: vec![], fill: Fill::Any, notes: None }
    }

    /// This source, whose [`Gen::format`] always returns `format`, if one is given.
    #[must_use]
    pub fn only(self, format: Option<GgmlType>) -> Self {
        Self { only: format, ..self }
    }

    /// This source, which also writes down the value of each choice.
    #[must_use]
    pub fn noted(self) -> Self {
        Self { notes: Some(vec![]), ..self }
    }

    /// The choices so far.
    #[must_use]
    pub fn taken(&self) -> &[u32] {
        &self.taken
    }

    /// The numbers of values in the blocks so far; 0 for blocks whose values are drawn later.
    #[must_use]
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// The values of the choices so far, if they are noted.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        self.notes.as_deref().unwrap_or_default()
    }

    /// 64 random bits (SplitMix64, Steele et al. 2014).
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A choice below `count`.
    fn choice<T: Debug>(&mut self, count: usize, value: impl Fn(usize) -> T) -> T {
        let drawn = (self.bits() % count as u64) as usize;
        self.choose(drawn, count, value)
    }

    /// The given choice, otherwise the one that was drawn.
    fn choose<T: Debug>(&mut self, drawn: usize, count: usize, value: impl Fn(usize) -> T) -> T {
        let at = self.given.get(self.taken.len()).map_or(drawn, |&given| (given as usize).min(count - 1));
        self.taken.push(at as u32);
        let value = value(at);
        if let Some(notes) = &mut self.notes {
            notes.push(format!("{value:?}"));
        }
        value
    }

    pub fn coin(&mut self) -> bool {
        self.choice(2, |n| n == 1)
    }

    /// One of these values.
    pub fn pick<T: Copy + Debug>(&mut self, from: &[T]) -> T {
        self.choice(from.len(), |n| from[n])
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        self.choice(end as usize, |n| n as u32)
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
        self.format_with(|_| true)
    }

    /// Any weight format that satisfies `wanted`.
    pub fn format_with(&mut self, wanted: impl Fn(&Format) -> bool) -> GgmlType {
        let (mut among, others): (Vec<_>, Vec<_>) = FORMATS.iter().partition(|f| wanted(f));
        let drawn = (self.bits() % among.len() as u64) as usize;
        among.extend(others);
        let drawn = self.only.map_or(drawn, |only| among.iter().position(|f| f.ty == only).unwrap_or(drawn));
        self.choose(drawn, among.len(), |n| among[n].ty)
    }

    /// A row length that this format can have: whole blocks, or any length for formats without
    /// blocks. Of the lengths of [`dim`](Self::dim) none is 2 more than a multiple of 4, so 63
    /// becomes 62.
    pub fn cols(&mut self, ty: GgmlType) -> u32 {
        let block = ty.block_size() as u32;
        if block == 1 {
            Some(self.dim()).filter(|&length| length != 63).unwrap_or(62)
        } else {
            block * self.pick(&[1, 2, 3, 5, 8, if block == 32 { 16 } else { 8 }])
        }
    }

    /// Begins a block of values.
    pub fn block(&mut self) {
        self.fill = self.fills.get(self.blocks.len()).copied().unwrap_or_default();
        self.blocks.push(0);
    }

    /// A source of one block of values, which may be drawn later.
    pub fn apart(&mut self) -> Self {
        self.block();
        let mut apart = Self::given(self.bits(), &[], &[self.fill]);
        apart.block();
        apart
    }

    /// Uniform in [-1, 1), or as the block's form says.
    pub fn unit(&mut self) -> f32 {
        let any = uniform(self.bits());
        let Some(values) = self.blocks.last_mut() else { return any };
        *values += 1;
        let at = *values - 1;
        match self.fill {
            Fill::Any => any,
            Fill::Quarters => (4.0 * any).round() / 4.0,
            Fill::Only(from, to) if !(from..to).contains(&at) => 0.0,
            Fill::Equal | Fill::Only(..) => 0.5,
            Fill::Zero => 0.0,
        }
    }

    /// 64 bits that are a value and no choice.
    fn word(&mut self) -> u64 {
        let any = self.bits();
        if self.fill == Fill::Zero { 0 } else { any }
    }

    /// A number below `end` that is a value and no choice, such as an id of many.
    pub fn id(&mut self, end: u32) -> u32 {
        (self.word() % u64::from(end)) as u32
    }

    /// One of these values, where so many are drawn that they are no choices.
    pub fn any_of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.id(from.len() as u32) as usize]
    }

    /// A block of values in [-amplitude, amplitude).
    pub fn units(&mut self, n: u32, amplitude: f32) -> Vec<f32> {
        self.block();
        (0..n).map(|_| amplitude * self.unit()).collect()
    }

    /// A block of values of one of several kinds: ordinary, tiny, large, all equal, with outliers.
    pub fn values(&mut self, n: usize) -> Vec<f32> {
        let kind = self.pick(&[0, 0, 0, 1, 2, 3, 4]);
        let equal = uniform(self.bits());
        self.block();
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
            return (0..n / ty.block_size())
                .flat_map(|_| crate::kernel::format::random_block(ty, &mut || self.word()))
                .collect();
        }
        let values: Vec<f32> = (0..n).map(|_| self.unit()).collect();
        gguf::quantize(ty, &values, cols as usize).expect("finite values")
    }
}
