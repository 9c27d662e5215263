//! Rows of the KV cache: writes or reads one row.

use half::f16;

use crate::check;

/// Elements that share one scale in a [`KvType::Q8_0`] row.
const BLOCK: usize = 32;

/// The storage format of a row in the cache. Every row starts at a multiple of 16 bytes and is
/// padded with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvType {
    /// f32, little-endian.
    F32,
    /// IEEE half, rounded to nearest even.
    F16,
    /// 8-bit quants in blocks of 32; the last block may be short. A row holds the quants of all
    /// blocks (i8, padded with zeros to whole blocks), then one f32 scale per block. The scale is d
    /// = max |x| / 127, a quant is x / d rounded half away from zero, both in f32. The quants are
    /// computed as in ggml's Q8_0, with a wider scale. The layout is our own.
    Q8_0,
}

impl std::fmt::Display for KvType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Q8_0 => "q8_0",
        })
    }
}

impl KvType {
    /// Size in bytes of a row of `width` elements: a multiple of 16.
    pub fn row_bytes(self, width: usize) -> usize {
        let bytes = match self {
            KvType::F32 => width * 4,
            KvType::F16 => width * 2,
            KvType::Q8_0 => width.div_ceil(BLOCK) * (BLOCK + 4),
        };
        bytes.next_multiple_of(16)
    }
}

/// Stores `row [width]` as row `at` of `cache`, padding included. Values beyond the type's range
/// become infinite (F16).
pub fn kv_append(cache: &mut [u8], ty: KvType, width: usize, at: usize, row: &[f32]) {
    check::len("kv_append: row", row.len(), width);
    let row_bytes = ty.row_bytes(width);
    let rows = check::rows("kv_append: cache", cache.len(), row_bytes);
    assert!(at < rows, "kv_append: row {at} of {rows}");
    let out = &mut cache[at * row_bytes..][..row_bytes];
    out.fill(0);
    match ty {
        KvType::F32 => {
            row.iter().zip(out.chunks_exact_mut(4)).for_each(|(x, out)| out.copy_from_slice(&x.to_le_bytes()))
        }
        KvType::F16 => {
            let halves = row.iter().map(|&x| f16::from_f32(x));
            halves.zip(out.chunks_exact_mut(2)).for_each(|(x, out)| out.copy_from_slice(&x.to_le_bytes()));
        }
        KvType::Q8_0 => {
            let (quants, scales) = out.split_at_mut(width.div_ceil(BLOCK) * BLOCK);
            for ((x, quants), scale) in
                row.chunks(BLOCK).zip(quants.chunks_exact_mut(BLOCK)).zip(scales.chunks_exact_mut(4))
            {
                let d = x.iter().fold(0.0f32, |max, x| max.max(x.abs())) / 127.0;
                scale.copy_from_slice(&d.to_le_bytes());
                for (x, q) in x.iter().zip(quants) {
                    *q = if d == 0.0 { 0 } else { (x / d).round().clamp(-127.0, 127.0) as i8 as u8 };
                }
            }
        }
    }
}

/// Reads row `at` of `cache` into `y [width]`.
pub fn kv_read(cache: &[u8], ty: KvType, width: usize, at: usize, y: &mut [f32]) {
    check::len("kv_read: y", y.len(), width);
    let row_bytes = ty.row_bytes(width);
    let rows = check::rows("kv_read: cache", cache.len(), row_bytes);
    assert!(at < rows, "kv_read: row {at} of {rows}");
    let row = &cache[at * row_bytes..][..row_bytes];
    match ty {
        KvType::F32 => y.iter_mut().zip(row.chunks_exact(4)).for_each(|(y, x)| *y = f32_at(x)),
        KvType::F16 => {
            y.iter_mut().zip(row.chunks_exact(2)).for_each(|(y, x)| *y = f16::from_le_bytes([x[0], x[1]]).to_f32());
        }
        KvType::Q8_0 => {
            let (quants, scales) = row.split_at(width.div_ceil(BLOCK) * BLOCK);
            for ((y, quants), scale) in y.chunks_mut(BLOCK).zip(quants.chunks_exact(BLOCK)).zip(scales.chunks_exact(4))
            {
                let d = f32_at(scale);
                y.iter_mut().zip(quants).for_each(|(y, &q)| *y = d * (q as i8) as f32);
            }
        }
    }
}

/// The f32 in the first four bytes.
fn f32_at(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(ty: KvType, row: &[f32]) -> Vec<f32> {
        let mut cache = vec![0xaa; 3 * ty.row_bytes(row.len())];
        let mut y = vec![f32::NAN; row.len()];
        kv_append(&mut cache, ty, row.len(), 1, row);
        kv_read(&cache, ty, row.len(), 1, &mut y);
        let row_bytes = ty.row_bytes(row.len());
        let outside = cache[..row_bytes].iter().chain(&cache[2 * row_bytes..]);
        assert!(outside.copied().all(|byte| byte == 0xaa), "{ty:?} wrote outside its row");
        y
    }

    #[test]
    fn row_bytes_are_padded_to_sixteen() {
        let sizes = |ty: KvType| [1, 8, 32, 33, 64, 128].map(|width| ty.row_bytes(width));
        assert_eq!(sizes(KvType::F32), [16, 32, 128, 144, 256, 512]);
        assert_eq!(sizes(KvType::F16), [16, 16, 64, 80, 128, 256]);
        assert_eq!(sizes(KvType::Q8_0), [48, 48, 48, 80, 80, 144]);
    }

    #[test]
    fn f32_rows_come_back_bit_for_bit() {
        let row = [1.0, -0.0, f32::MIN_POSITIVE, f32::MAX, 1.0 / 3.0];
        assert_eq!(
            round_trip(KvType::F32, &row).iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            row.map(f32::to_bits)
        );
    }

    #[test]
    fn f16_rounds_ties_to_even() {
        // f16 values between 2048 and 4096 are 2 apart. The smallest subnormal f16 is 2^-24.
        let row = [2049.0, 2051.0, 65504.0, 1e6, 0.5f32.powi(24), 0.5f32.powi(25)];
        assert_eq!(round_trip(KvType::F16, &row), [2048.0, 2052.0, 65504.0, f32::INFINITY, 0.5f32.powi(24), 0.0]);
    }

    #[test]
    fn q8_0_layout_of_a_short_second_block() {
        // Block 0 has maximum 127 (d = 1), block 1 has maximum 254 (d = 2). 33 elements take 64
        // quants, two scales and 8 bytes of padding.
        let mut row = [0.0; 33];
        (row[0], row[1], row[2], row[31], row[32]) = (127.0, -2.5, 2.5, 0.49, -254.0);
        let mut cache = [0xaa; 80];
        kv_append(&mut cache, KvType::Q8_0, 33, 0, &row);
        let mut want = [0u8; 80];
        (want[0], want[1], want[2], want[32]) = (127, -3i8 as u8, 3, -127i8 as u8);
        want[64..68].copy_from_slice(&1f32.to_le_bytes());
        want[68..72].copy_from_slice(&2f32.to_le_bytes());
        assert_eq!(cache, want);
    }

    #[test]
    fn q8_0_error_is_at_most_half_a_step_per_block() {
        let row: Vec<f32> =
            (0..100).map(|i| ((i * 37 % 101) as f32 - 50.0) * if i < 64 { 1.0 } else { 1e-3 }).collect();
        for (block, (x, y)) in row.chunks(32).zip(round_trip(KvType::Q8_0, &row).chunks(32)).enumerate() {
            let step = x.iter().fold(0f32, |max, x| max.max(x.abs())) / 127.0;
            for (x, y) in x.iter().zip(y) {
                assert!((x - y).abs() <= step * 0.50001, "block {block}: {x} became {y}, step {step}");
            }
        }
    }

    #[test]
    fn q8_0_zero_tiny_and_huge_blocks_stay_finite() {
        assert_eq!(round_trip(KvType::Q8_0, &[0.0; 5]), [0.0; 5]);
        let mut cache = [0xaa; 48];
        kv_append(&mut cache, KvType::Q8_0, 1, 0, &[f32::from_bits(1)]);
        assert_eq!(cache, [0; 48], "a scale that underflows has quants of zero");
        assert!(round_trip(KvType::Q8_0, &[f32::from_bits(200)])[0] <= f32::from_bits(254));
        assert!((round_trip(KvType::Q8_0, &[3e38])[0] / 3e38 - 1.0).abs() < 1e-6);
    }

    #[test]
    #[should_panic(expected = "kv_append: row 2 of 2")]
    fn a_full_cache_panics() {
        kv_append(&mut [0; 32], KvType::F32, 4, 2, &[0.0; 4]);
    }
}
