//! The slots of a step, grouped by expert.

/// Writes the slots 0, 1, 2, .. to `slots`, sorted by their expert in `experts`; the slots of one
/// expert stay in order. Cuts the run of every expert into tiles of up to `tile` slots and returns
/// `[expert, first, count]` for each tile, where `first` is an index into `slots`. `slots` is as
/// long as `experts`.
pub fn group_experts(experts: &[u32], tile: usize, slots: &mut [u32]) -> Vec<[u32; 3]> {
    crate::check::len("group_experts: slots", slots.len(), experts.len());
    assert!(tile > 0, "group_experts: tiles of 0 slots");
    for (slot, s) in slots.iter_mut().zip(0..) {
        *slot = s;
    }
    slots.sort_by_key(|&s| experts[s as usize]);
    let (mut tiles, mut first) = (Vec::new(), 0);
    for run in slots.chunk_by(|&a, &b| experts[a as usize] == experts[b as usize]) {
        for part in run.chunks(tile) {
            tiles.push([experts[run[0] as usize], first, part.len() as u32]);
            first += part.len() as u32;
        }
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::group_experts;

    #[test]
    fn runs_in_tiles_with_a_remainder_and_idle_experts() {
        let mut slots = [u32::MAX; 7];
        let tiles = group_experts(&[5, 1, 5, 5, 1, 0, 5], 3, &mut slots);
        assert_eq!(slots, [5, 1, 4, 0, 2, 3, 6]);
        assert_eq!(tiles, [[0, 0, 1], [1, 1, 2], [5, 3, 3], [5, 6, 1]]);
    }

    #[test]
    fn no_slots_make_no_tiles() {
        assert!(group_experts(&[], 4, &mut []).is_empty());
    }

    #[test]
    #[should_panic(expected = "group_experts: slots has 1 elements, expected 2")]
    fn as_many_slots_as_choices() {
        group_experts(&[0, 0], 1, &mut [0]);
    }
}
