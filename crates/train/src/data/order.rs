//! The order of examples in each epoch, in no memory.

use kernels::cpu_ref::threefry2x32;

/// Rounds of the network: enough that its permutations look drawn.
const ROUNDS: u32 = 8;

/// The order of the examples in one epoch.
#[derive(Copy, Clone, Debug)]
pub enum Order {
    /// The order in which the examples stand.
    Given,
    /// A permutation that depends on the seed, the epoch and the number of examples only: a Feistel
    /// network whose rounds are Threefry (Salmon et al. 2011) permutes the smallest square of a
    /// power of two that holds all examples, and numbers outside are permuted until they are inside
    /// (Black & Rogaway 2002, "Ciphers with arbitrary finite domains", cycle walking).
    Shuffled { seed: u64, epoch: u64 },
}

impl Order {
    /// The example at a position of an epoch of `len` examples.
    ///
    /// # Panics
    /// If `position` is not below `len`.
    #[must_use]
    pub fn at(self, position: u64, len: u64) -> u64 {
        assert!(position < len, "position {position} of {len}");
        match self {
            Self::Given => position,
            Self::Shuffled { seed, epoch } => {
                let key = threefry2x32(words(seed), words(epoch));
                let half = (u64::BITS - (len - 1).leading_zeros()).div_ceil(2).max(1);
                let mut example = permuted(position, half, key);
                while example >= len {
                    example = permuted(example, half, key);
                }
                example
            }
        }
    }
}

/// A number below 2^(2 `half`) under a permutation of these numbers.
fn permuted(number: u64, half: u32, key: [u32; 2]) -> u64 {
    let mask = u32::MAX >> (32 - half);
    let (mut left, mut right) = ((number >> half) as u32, number as u32 & mask);
    for round in 0..ROUNDS {
        (left, right) = (right, left ^ threefry2x32(key, [right, round])[0] & mask);
    }
    u64::from(left) << half | u64::from(right)
}

fn words(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(len: u64, seed: u64, epoch: u64) -> Vec<u64> {
        (0..len).map(|position| Order::Shuffled { seed, epoch }.at(position, len)).collect()
    }

    proptest! {
        #[test]
        fn an_order_has_every_example_once(len in 1..2000u64, seed: u64, epoch: u64) {
            let mut all = order(len, seed, epoch);
            all.sort_unstable();
            prop_assert_eq!(all, (0..len).collect::<Vec<_>>());
        }

        #[test]
        fn epochs_and_seeds_differ(len in 30..300u64, seed in 0..u64::MAX, epoch in 0..u64::MAX) {
            let one = order(len, seed, epoch);
            prop_assert!(one != order(len, seed, epoch + 1) && one != order(len, seed + 1, epoch));
            prop_assert!(one != (0..len).collect::<Vec<_>>());
        }

        #[test]
        fn the_largest_files_have_an_order(position: u64, seed: u64) {
            let order = Order::Shuffled { seed, epoch: 0 };
            prop_assert!(order.at(position % (u64::MAX - 1), u64::MAX) < u64::MAX);
        }
    }

    #[test]
    fn each_example_comes_to_each_place() {
        let mut seen = [[0; 5]; 5];
        for epoch in 0..2000 {
            order(5, 1, epoch).iter().enumerate().for_each(|(at, &example)| seen[at][example as usize] += 1);
        }
        // 400 each, with a deviation of 18.
        assert!(seen.iter().flatten().all(|n| (310..490).contains(n)), "{seen:?}");
    }

    #[test]
    fn orders_stay_what_they_are() {
        // A checkpoint that an earlier version wrote goes on with the same batches.
        assert_eq!(order(8, 42, 1), [5, 0, 4, 7, 2, 6, 1, 3]);
    }
}
