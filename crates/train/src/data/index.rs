//! Places of examples, in bounded memory.

use super::lines::Place;

/// Places that are kept at most: 3 MiB.
const MOST: usize = 1 << 17;

/// The place of every n-th example that can be used, over all files. When the index is full, n
/// doubles.
#[derive(Debug)]
pub(super) struct Index {
    /// Each with the number of its file.
    places: Vec<(u32, Place)>,
    stride: u64,
    len: u64,
}

impl Index {
    pub fn new() -> Self {
        Self { places: vec![], stride: 1, len: 0 }
    }

    pub fn push(&mut self, file: u32, place: Place) {
        if self.len.is_multiple_of(self.stride) {
            if self.places.len() == MOST {
                let mut n = 0;
                self.places.retain(|_| {
                    n += 1;
                    n % 2 == 1
                });
                self.stride *= 2;
            }
            // After the stride has doubled, the number of places is even, so that this one is due.
            self.places.push((file, place));
        }
        self.len += 1;
    }

    /// Number of examples.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Where to begin for the n-th example, and how many examples to pass from there.
    pub fn find(&self, n: u64) -> (u32, Place, u64) {
        let (file, place) = self.places[(n / self.stride) as usize];
        (file, place, n % self.stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_index_keeps_every_second_place() {
        let place = |n: u64| Place { at: 10 * n, line: n + 1 };
        let mut index = Index::new();
        for n in 0..5 * MOST as u64 {
            index.push(0, place(n));
            assert!(index.places.len() <= MOST);
        }
        assert_eq!((index.len(), index.stride), (5 * MOST as u64, 8));
        for n in [0, 1, 7, 8, 9, MOST as u64, 2 * MOST as u64 - 1, 5 * MOST as u64 - 1] {
            let (_, found, passed) = index.find(n);
            assert_eq!((found, passed < 8), (place(n - passed), true), "{n}");
        }
    }
}
