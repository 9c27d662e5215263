//! Parity cases of `group_experts`.

use super::group_experts::group_experts;
use super::route;
use crate::graph::tensor::{Lead, Shape};
use crate::kernel::random::Gen;
use crate::testing::parity::{Case, MakeCase};

/// The cases, by the stem of their operation.
pub static CASES: &[(&str, MakeCase)] = &[("group_experts", case)];

/// Distinct experts for every row: any of all, any of a few, or always the first.
pub(crate) fn choices(g: &mut Gen, rows: u32, count: u32, k: u32) -> Vec<f32> {
    let busy = g.pick(&[count, count, k]);
    let from = g.bits() as u32 % (count - busy + 1);
    let row = |g: &mut Gen| {
        let mut all: Vec<u32> = (from..from + busy).collect();
        (0..k as usize).for_each(|j| all.swap(j, j + g.id(busy - j as u32) as usize));
        all.truncate(k as usize);
        all
    };
    g.block();
    (0..rows).flat_map(|_| row(g)).map(f32::from_bits).collect()
}

/// Choices among 1 to 1024 experts: many experts without slots, or one with all; full and partial
/// tiles.
pub fn case(g: &mut Gen) -> Case {
    let (rows, count) = (g.pick(&[1, 2, 9, 32, 33, 65, 258]), g.pick(&[1, 2, 8, 60, 128, 257, route::MAX_EXPERTS]));
    let k = g.pick(&[1, 2, 8, count]).min(count).min(64);
    let mut case = Case::new(rows);
    let values = choices(g, rows, count, k);
    let experts = case.given(Shape::new(Lead::Step, rows, k), values);
    let groups = group_experts(&mut case.rec, experts, count);
    case.expect(groups.slots);
    case.expect(groups.tiles);
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tensor::Counts;

    #[test]
    fn tiles_of_the_worst_spread_fit_and_no_more_are_planned() {
        for (rows, k, count) in [(1, 1, 4), (9, 2, 3), (40, 2, 8), (512, 8, 128), (511, 8, 128), (3, 8, 128)] {
            let mut rec: crate::Recorder = crate::Recorder::new(Counts { step: rows, out: rows }, &[]);
            let experts = rec.host_input(0, Shape::new(Lead::Step, rows, k));
            let groups = group_experts(&mut rec, experts, count);
            let planned = groups.tiles.shape.rows;
            // All experts except one serve one slot each, as far as there are slots.
            let slots = rows * k;
            let alone = (count - 1).min(slots - 1);
            let worst = alone + (slots - alone).div_ceil(groups.most);
            assert!(
                planned >= worst && planned <= slots.div_ceil(groups.most) + count,
                "{rows} x {k} of {count}: {planned} for {worst}"
            );
        }
    }
}
