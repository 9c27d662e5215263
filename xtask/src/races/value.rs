//! Values of all invocations of a workgroup, as the words of their scalars.

/// The scalars of a value, each with one word per invocation, or with one word that all
/// invocations share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Words per scalar: 1, or the number of invocations.
    pub lanes: usize,
    /// All words of the first scalar, then those of the next.
    pub words: Vec<u32>,
}

impl Value {
    /// A value that all invocations share.
    pub fn shared(words: Vec<u32>) -> Self {
        Self { lanes: 1, words }
    }

    pub fn zeros(scalars: usize) -> Self {
        Self::shared(vec![0; scalars])
    }

    /// A scalar with these words.
    pub fn of_lanes(words: Vec<u32>) -> Self {
        Self { lanes: words.len(), words }
    }

    /// Number of scalars.
    pub fn scalars(&self) -> usize {
        self.words.len() / self.lanes
    }

    pub fn is_shared(&self) -> bool {
        self.lanes == 1
    }

    /// The word of a scalar in an invocation.
    #[inline]
    pub fn at(&self, scalar: usize, lane: usize) -> u32 {
        if self.lanes == 1 { self.words[scalar] } else { self.words[scalar * self.lanes + lane] }
    }

    /// This value with a word for each of `lanes` invocations.
    pub fn spread(&self, lanes: usize) -> Self {
        if self.lanes == lanes {
            return self.clone();
        }
        Self { lanes, words: self.words.iter().flat_map(|&word| std::iter::repeat_n(word, lanes)).collect() }
    }

    /// Scalars from `first` on.
    pub fn part(&self, first: usize, scalars: usize) -> Self {
        Self { lanes: self.lanes, words: self.words[first * self.lanes..(first + scalars) * self.lanes].to_vec() }
    }

    /// These values, one after the other.
    pub fn joined<'a>(parts: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let lanes = parts.clone().map(|part| part.lanes).max().unwrap_or(1);
        let mut words = vec![];
        for part in parts {
            if part.lanes == lanes {
                words.extend_from_slice(&part.words);
            } else {
                words.extend(part.words.iter().flat_map(|&word| std::iter::repeat_n(word, lanes)));
            }
        }
        Self { lanes, words }
    }

    pub fn map(&self, f: impl Fn(u32) -> u32) -> Self {
        Self { lanes: self.lanes, words: self.words.iter().map(|&word| f(word)).collect() }
    }

    /// The results of a function of the scalars of two values. A single scalar is paired with each
    /// scalar of the other value.
    pub fn zip(&self, other: &Self, f: impl Fn(u32, u32) -> u32) -> Self {
        let scalars = self.scalars().max(other.scalars());
        if self.lanes == other.lanes && self.words.len() == other.words.len() {
            return Self {
                lanes: self.lanes,
                words: self.words.iter().zip(&other.words).map(|(&a, &b)| f(a, b)).collect(),
            };
        }
        let lanes = self.lanes.max(other.lanes);
        let mut words = Vec::with_capacity(scalars * lanes);
        for scalar in 0..scalars {
            let (a, b) = (self.row(scalar), other.row(scalar));
            match (a, b) {
                ([a], b) => words.extend(b.iter().map(|&b| f(*a, b))),
                (a, [b]) => words.extend(a.iter().map(|&a| f(a, *b))),
                (a, b) => words.extend(a.iter().zip(b).map(|(&a, &b)| f(a, b))),
            }
        }
        Self { lanes, words }
    }

    /// The results of a function of the scalars of three values. A single scalar is combined with
    /// each scalar of the other values.
    pub fn zip3(&self, b: &Self, c: &Self, f: impl Fn(u32, u32, u32) -> u32) -> Self {
        let scalars = self.scalars().max(b.scalars()).max(c.scalars());
        let lanes = self.lanes.max(b.lanes).max(c.lanes);
        let of = |value: &Self, scalar, lane| value.at(if value.scalars() == 1 { 0 } else { scalar }, lane);
        let place = (0..scalars).flat_map(|scalar| (0..lanes).map(move |lane| (scalar, lane)));
        Self { lanes, words: place.map(|(n, lane)| f(of(self, n, lane), of(b, n, lane), of(c, n, lane))).collect() }
    }

    /// One scalar from all scalars of each invocation.
    pub fn fold(&self, f: impl Fn(u32, u32) -> u32) -> Self {
        let of = |lane| (1..self.scalars()).fold(self.at(0, lane), |so_far, n| f(so_far, self.at(n, lane)));
        Self { lanes: self.lanes, words: (0..self.lanes).map(of).collect() }
    }

    /// The words of a scalar, or of the only scalar.
    fn row(&self, scalar: usize) -> &[u32] {
        let scalar = if self.scalars() == 1 { 0 } else { scalar };
        &self.words[scalar * self.lanes..(scalar + 1) * self.lanes]
    }

    /// Replaces the scalars from `first` on, in the invocations of `mask`.
    pub fn put(&mut self, first: usize, part: &Self, mask: &Mask) {
        if part.is_shared() && mask.all() && self.is_shared() {
            self.words[first..first + part.words.len()].copy_from_slice(&part.words);
            return;
        }
        if self.lanes != mask.lanes() {
            *self = self.spread(mask.lanes());
        }
        for scalar in 0..part.scalars() {
            let start = (first + scalar) * self.lanes;
            let to = &mut self.words[start..start + self.lanes];
            mask.each(|lane| to[lane] = part.at(scalar, lane));
        }
    }
}

/// Some of the invocations of a workgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask(Vec<bool>);

impl Mask {
    pub fn full(lanes: usize) -> Self {
        Self(vec![true; lanes])
    }

    pub fn none(lanes: usize) -> Self {
        Self(vec![false; lanes])
    }

    pub fn lanes(&self) -> usize {
        self.0.len()
    }

    pub fn has(&self, lane: usize) -> bool {
        self.0[lane]
    }

    pub fn all(&self) -> bool {
        self.0.iter().all(|&on| on)
    }

    pub fn is_empty(&self) -> bool {
        !self.0.iter().any(|&on| on)
    }

    pub fn each(&self, mut f: impl FnMut(usize)) {
        self.0.iter().enumerate().filter(|(_, on)| **on).for_each(|(lane, _)| f(lane));
    }

    /// The invocations of a subgroup.
    pub fn of_subgroup(&self, subgroup: usize, size: usize) -> &[bool] {
        &self.0[subgroup * size..((subgroup + 1) * size).min(self.0.len())]
    }

    /// The invocations that are in this mask and for which `f` holds.
    pub fn and(&self, f: impl Fn(usize) -> bool) -> Self {
        Self(self.0.iter().enumerate().map(|(lane, &on)| on && f(lane)).collect())
    }

    pub fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(on, &also)| *on |= also);
    }

    pub fn clear(&mut self) {
        self.0.fill(false);
    }
}
