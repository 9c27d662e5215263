//! Parts of a file's examples, for training and for validation.

use kernels::cpu_ref::threefry2x32;

/// The examples of a part, in the order of the file.
#[derive(Copy, Clone, Debug)]
pub(super) enum Part {
    All { len: u64 },
    Training(Split),
    Validation(Split),
}

/// Of each of `chosen` stretches of `len` examples, one is for validation. The first stretches may
/// be an example longer than the others.
#[derive(Copy, Clone, Debug)]
pub(super) struct Split {
    pub len: u64,
    /// At least 1, at most half of `len`.
    pub chosen: u64,
    pub seed: u64,
}

impl Split {
    /// The first example of a stretch.
    fn first(&self, stretch: u64) -> u64 {
        stretch * (self.len / self.chosen) + stretch.min(self.len % self.chosen)
    }

    /// The example of a stretch that is for validation.
    fn validation(&self, stretch: u64) -> u64 {
        let words = |of: u64| [of as u32, (of >> 32) as u32];
        let [low, high] = threefry2x32(words(self.seed), words(stretch));
        let first = self.first(stretch);
        first + (u64::from(high) << 32 | u64::from(low)) % (self.first(stretch + 1) - first)
    }

    /// The n-th example that is for training.
    fn training(&self, n: u64) -> u64 {
        // Before a stretch, as many examples are for validation as there are stretches.
        let before = |stretch: u64| self.first(stretch) - stretch;
        let (mut low, mut high) = (0, self.chosen);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if before(middle) <= n { low = middle } else { high = middle }
        }
        let example = self.first(low) + (n - before(low));
        example + u64::from(example >= self.validation(low))
    }
}

impl Part {
    pub fn len(&self) -> u64 {
        match self {
            Self::All { len } => *len,
            Self::Training(split) => split.len - split.chosen,
            Self::Validation(split) => split.chosen,
        }
    }

    /// The example of the file.
    pub fn example(&self, n: u64) -> u64 {
        match self {
            Self::All { .. } => n,
            Self::Training(split) => split.training(n),
            Self::Validation(split) => split.validation(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_example_is_in_one_part_and_in_order(len in 2..500u64, share in 0.0..1.0f64, seed: u64) {
            let chosen = 1 + (share * (len / 2 - 1) as f64) as u64;
            let split = Split { len, chosen, seed };
            let of = |part: Part| (0..part.len()).map(|n| part.example(n)).collect::<Vec<_>>();
            let (training, validation) = (of(Part::Training(split)), of(Part::Validation(split)));
            prop_assert!([&training, &validation].iter().all(|part| part.windows(2).all(|two| two[0] < two[1])));
            let mut all = [training, validation].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn seeds_choose_differently() {
        let chosen = |seed| {
            let part = Part::Validation(Split { len: 1000, chosen: 50, seed });
            (0..50).map(|n| part.example(n)).collect::<Vec<_>>()
        };
        assert_ne!(chosen(1), chosen(2));
        assert_eq!(chosen(1), chosen(1));
    }
}
