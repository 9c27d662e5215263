//! Numbers of rows and dispatches of steps: constants, each beside the card that measured it. With
//! other numbers, results are as correct.

use super::Table;

/// Dispatches before the first early submit of a step. Each pass has twice as many as the pass
/// before it, so that submits stay few.
///
/// The host encodes the 727 of a step of 64 rows of Qwen3-30B-A3B in 3.9 ms (16 cores).
///
/// Unit: dispatches. Card: NVIDIA H100.
pub(crate) const EARLY_DISPATCHES: usize = 16;

/// Largest number of dispatches of an early pass.
///
/// A step of one row has short dispatches: the device runs the 145 of Qwen2.5-1.5B in 0.9 ms, and
/// the host encodes them in 0.45 ms. The step takes 1.21 ms with at most 64 in a pass, 1.29 with
/// 128, 1.18 with 32 and 1.58 in one pass. Steps of 16 to 256 rows are 1 to 7% slower with 32.
///
/// Unit: dispatches. Card: NVIDIA H200.
pub(crate) const PASS_DISPATCHES: usize = 64;

/// Numbers of rows for the steps of sessions.
impl Table {
    /// Rows from which on there are plans halfway between two powers of two.
    ///
    /// 192 rows of Qwen2.5-1.5B take 7.5 ms in small tiles, in a plan of 192 rows, and 8.0 ms in
    /// large ones, in a plan of 256.
    ///
    /// Unit: rows. Card: NVIDIA H200.
    pub const HALFWAY_ROWS: u32 = 32;

    /// The rows of two more plans.
    ///
    /// 6 rows of Qwen3-8B take 4.0 ms in a plan of 6 rows and 4.5 ms in one of 8; 65 rows take 10.3
    /// ms in a plan of 80 rows and 13.2 ms in one of 128.
    ///
    /// Unit: rows. Card: NVIDIA H200.
    pub const FURTHER_ROWS: [u32; 2] = [6, 80];

    /// Rows of a prompt that are evaluated together, tried in order on devices whose table allows
    /// them, such as discrete GPUs. Weights are read once per chunk, and products of many rows use
    /// the device better.
    ///
    /// Qwen3-8B read 6,515 tokens a second in chunks of 512, and 9,263 in one chunk of 2048.
    ///
    /// Unit: rows. Card: NVIDIA H200.
    pub const LARGE_CHUNKS: [u32; 2] = [2048, 1024];

    /// The most rows behind 1, 2, .. 15 whole tiles of 128 rows that are a step of their own, by
    /// the weights that one row of the model is multiplied with, at least this many. In smaller
    /// models, more of a step is not products.
    ///
    /// Products run in rounds of workgroups. So one row more than whole tiles costs as much as 128
    /// rows more, or nearly nothing. It costs more than a step of its own where a round begins.
    /// Milliseconds of one row more and of 128 rows more in one step; a step of 1 and of 32 rows
    /// behind another takes 2.3 and 5.8, 1.7 and 4.7, 1.6 and 4.3, 0.9 and 2.5:
    ///
    /// | rows | Qwen3-8B | Qwen3-4B | Gemma 4 E2B | Qwen2.5-1.5B |
    /// | ---: | ---: | ---: | ---: | ---: |
    /// | 128 | 7.9, 10.0 | 3.4, 5.6 | 3.0, 3.8 | 1.8, 2.2 |
    /// | 256 | 8.4, 9.2 | 3.4, 4.1 | 2.9, 4.4 | 0.8, 1.7 |
    /// | 384 | 6.5, 7.1 | 5.3, 6.4 | 1.2, 0.9 | 1.8, 2.6 |
    /// | 512 | 13.0, 13.7 | 5.5, 5.4 | 3.3, 3.9 | 0.8, 1.3 |
    /// | 640 | 0.8, 1.4 | 1.0, 1.4 | 2.0, 3.9 | 1.0, 2.8 |
    /// | 768 | 12.0, 13.2 | 8.5, 8.4 | 2.5, 2.0 | 0.1, 0.6 |
    /// | 896 | 0.6, 1.6 | 0.8, 1.8 | 0.7, 0.8 | 1.2, 1.6 |
    /// | 1024 | 23.2, 24.3 | 6.2, 7.4 | 5.9, 7.7 | 1.5, 1.7 |
    /// | 1152 | 1.6, 2.8 | 0.7, 1.4 | 2.6, 2.0 | 1.7, 1.8 |
    /// | 1280 | 0.2, 1.4 | 5.9, 5.5 | 0.0, 2.1 | 0.9, 0.6 |
    /// | 1408 | 9.8, 10.8 | 1.6, 2.3 | 4.5, 3.2 | 3.3, 3.7 |
    /// | 1536 | 12.3, 13.1 | 9.0, 10.0 | 2.4, 2.9 | 0.6, 1.6 |
    /// | 1664 | 7.9, 8.7 | 4.9, 7.2 | 3.0, 2.3 | 0.6, 1.0 |
    ///
    /// Rounds of other models begin elsewhere. The first two classes therefore also follow
    /// Qwen2.5-7B and Gemma 3 4B. Behind 1,024 rows they follow Qwen3-8B alone: 1,100 rows take 80
    /// ms there in place of 93 and 72 ms on Qwen2.5-7B, whose 1,088 rows take 70 ms in one step.
    ///
    /// Unit: weights, and rows. Card: NVIDIA H100.
    pub const RESTS: &'static [(u64, [u32; 15])] = &[
        (5_000_000_000, [48, 32, 32, 48, 0, 32, 0, 128, 0, 0, 32, 32, 32, 0, 0]),
        (2_500_000_000, [4, 1, 32, 16, 0, 32, 0, 32, 0, 0, 0, 64, 32, 0, 0]),
        (1_600_000_000, [1, 1, 0, 1, 1, 1, 0, 32, 0, 0, 16, 1, 1, 0, 0]),
        (1_000_000_000, [4, 0, 1, 0, 0, 0, 0, 1, 0, 0, 32, 0, 0, 0, 0]),
    ];
}
