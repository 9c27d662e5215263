//! Counter-based random bits.

/// Rotation distances of the eight rounds that repeat.
const ROTATIONS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];
/// Parity of the key schedule.
const PARITY: u32 = 0x1bd1_1bda;

/// Threefry-2x32 with 20 rounds: two words of random bits for each pair of `key` and `counter`.
///
/// A round is x0 += x1, x1 = rotl(x1) ^ x0. Before the first round and after every fourth round,
/// words of the key schedule are added. Source: Salmon et al. 2011, "Parallel random numbers: as
/// easy as 1, 2, 3" (SC 11), section 4.
pub fn threefry2x32(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    let schedule = [key[0], key[1], PARITY ^ key[0] ^ key[1]];
    let mut x0 = counter[0].wrapping_add(schedule[0]);
    let mut x1 = counter[1].wrapping_add(schedule[1]);
    for round in 0..20 {
        x0 = x0.wrapping_add(x1);
        x1 = x1.rotate_left(ROTATIONS[round % 8]) ^ x0;
        if round % 4 == 3 {
            let injection = round / 4 + 1;
            x0 = x0.wrapping_add(schedule[injection % 3]);
            x1 = x1.wrapping_add(schedule[(injection + 1) % 3]).wrapping_add(injection as u32);
        }
    }
    [x0, x1]
}

#[cfg(test)]
mod tests {
    use super::threefry2x32;

    /// The vectors that Random123 publishes for threefry2x32 with 20 rounds.
    #[test]
    fn published_known_answers() {
        assert_eq!(threefry2x32([0; 2], [0; 2]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry2x32([u32::MAX; 2], [u32::MAX; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
        let digits_of_pi = threefry2x32([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]);
        assert_eq!(digits_of_pi, [0xc492_3a9c, 0x483d_f7a0]);
    }

    #[test]
    fn one_bit_of_the_counter_changes_half_of_the_bits() {
        let flipped: u32 = (0..1000)
            .map(|i| {
                let (a, b) = (threefry2x32([1, 2], [i, 0]), threefry2x32([1, 2], [i, 1]));
                (a[0] ^ b[0]).count_ones() + (a[1] ^ b[1]).count_ones()
            })
            .sum();
        // 64000 bits, half of them flipped, standard deviation 126.
        assert!((31_300..32_700).contains(&flipped), "{flipped}");
    }
}
