//! The cosines and sines of positions, which rotate queries and keys.

use crate::graph::record::RopeTable;
use crate::platform::in_parallel;

/// Positions of a block.
const BLOCK: usize = 16;

/// Words that one task computes, in about 16 us. Tasks were smaller before, and 512 rows of 768
/// words took as long on 16 cores as on two: 0.7 to 1.0 ms and 1.1 ms.
const TASK: usize = 1 << 15;

/// A rope table that computes rows quickly. The angle of a position is the angle of the first
/// position of its block plus the angle of the steps from there. So a row is one complex product
/// for each pair, and sines are computed once for a block. A row does not depend on the other rows
/// of its step.
pub(crate) struct Angles {
    dim: usize,
    /// The angle of position 1 for each pair.
    frequencies: Vec<f64>,
    /// For each number of steps from the first position of a block: cosines and sines of all
    /// pairs, times the table's magnitude.
    steps: Vec<Turns>,
}

/// The cosine and the sine of an angle for each pair.
#[derive(Default)]
struct Turns {
    cosines: Vec<f64>,
    sines: Vec<f64>,
}

impl Turns {
    /// The turns to `position`, times `length`.
    fn to(position: u32, frequencies: &[f64], length: f64) -> Self {
        let turn = |frequency: &f64| (f64::from(position) * frequency).sin_cos();
        let (sines, cosines) = frequencies.iter().map(turn).map(|(sin, cos)| (length * sin, length * cos)).unzip();
        Self { cosines, sines }
    }
}

impl Angles {
    /// The angles of a table.
    pub fn new(table: &RopeTable) -> Self {
        let spec = table.spec();
        let frequencies = cpu_ref::rope_frequencies(&spec);
        let steps = (0..BLOCK as u32).map(|n| Turns::to(n, &frequencies, spec.magnitude)).collect();
        Self { dim: spec.dim, frequencies, steps }
    }

    /// Writes the rows of these positions, [T, dim / 2, 2], as [`cpu_ref::rope_rows`] gives them:
    /// f32, rounded once.
    pub fn write(&self, positions: &[u32], rows: &mut [f32]) {
        let task = (TASK / self.dim).max(1).next_multiple_of(BLOCK);
        if positions.len() <= task {
            return self.write_part(positions, rows);
        }
        in_parallel(rows, task * self.dim, |n, part| {
            let first = n * task;
            self.write_part(&positions[first..first + part.len() / self.dim], part);
        });
    }

    fn write_part(&self, positions: &[u32], rows: &mut [f32]) {
        let (mut first, mut start) = (None, Turns::default());
        for (&position, row) in positions.iter().zip(rows.chunks_exact_mut(self.dim)) {
            let steps = position % BLOCK as u32;
            if first != Some(position - steps) {
                first = Some(position - steps);
                start = Turns::to(position - steps, &self.frequencies, 1.0);
            }
            let (a, b) = (&start, &self.steps[steps as usize]);
            let (a, b) = (a.cosines.iter().zip(&a.sines), b.cosines.iter().zip(&b.sines));
            for (pair, ((a_cos, a_sin), (b_cos, b_sin))) in row.chunks_exact_mut(2).zip(a.zip(b)) {
                pair[0] = (a_cos * b_cos - a_sin * b_sin) as f32;
                pair[1] = (a_sin * b_cos + a_cos * b_sin) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(table: &RopeTable, positions: &[u32]) -> Vec<f32> {
        let mut rows = vec![f32::NAN; positions.len() * table.dim as usize];
        Angles::new(table).write(positions, &mut rows);
        rows
    }

    fn reference(table: &RopeTable, positions: &[u32]) -> Vec<f32> {
        let mut rows = vec![f32::NAN; positions.len() * table.dim as usize];
        cpu_ref::rope_rows(&table.spec(), positions, &mut rows);
        rows
    }

    /// Tables of up to 64 pairs, with every kind of scaling.
    fn tables() -> impl Strategy<Value = RopeTable> {
        let factors = |pairs: usize| prop::option::of(prop::collection::vec(prop_oneof![0.5..64.0, Just(1e30)], pairs));
        let shape = (1_usize..=64).prop_flat_map(move |pairs| (Just(pairs), factors(pairs)));
        (shape, 1e2..1e7, 0.05..1.0, 0.5..2.0).prop_map(|((pairs, factors), base, scale, magnitude)| RopeTable {
            dim: 2 * pairs as u32,
            base,
            scale,
            factors: factors.map(Into::into),
            magnitude,
        })
    }

    proptest! {
        #[test]
        fn rows_are_the_oracles_within_the_last_bit_of_f32(table in tables(), positions in prop::collection::vec(0..1_u32 << 20, 1..40)) {
            // Both angles of a million radians are rounded in f64, by 6e-11 each.
            let bound = table.magnitude * 1e-9;
            for (got, expected) in rows(&table, &positions).into_iter().zip(reference(&table, &positions)) {
                let bit = f64::from(f32::EPSILON) * f64::from(expected.abs());
                prop_assert!((f64::from(got) - f64::from(expected)).abs() <= bit + bound, "{got} instead of {expected}");
            }
        }

        #[test]
        fn a_row_has_the_same_bits_in_every_step(table in tables(), first in 0..1_u32 << 20, count in 1_usize..80) {
            let positions: Vec<u32> = (first..).take(count).collect();
            let alone: Vec<f32> = positions.iter().flat_map(|&position| rows(&table, &[position])).collect();
            prop_assert_eq!(rows(&table, &positions), alone);
        }
    }

    #[test]
    fn tasks_write_the_rows_of_one_task() {
        for (dim, last) in [(512, 305), (2 * TASK as u32, 40)] {
            let table = RopeTable::new(dim, 1e6);
            let positions: Vec<u32> = (5..last).collect();
            let alone: Vec<f32> = positions.chunks(10).flat_map(|some| rows(&table, some)).collect();
            assert_eq!(rows(&table, &positions), alone);
        }
    }

    #[test]
    fn position_0_is_not_rotated() {
        let table = RopeTable { magnitude: 1.25, ..RopeTable::new(4, 1e4) };
        assert_eq!(rows(&table, &[0]), [1.25, 0.0, 1.25, 0.0]);
    }
}
