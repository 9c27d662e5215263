//! Numbers by which kernels are chosen that `weft tune` does not measure: constants, each beside
//! the card that measured it. With other numbers, every kernel that is chosen is still correct.

// Products.

/// Tiles of 64 x 64 results for each of the table's `workgroups`, from which on a tile of `matmul`
/// has 64 threads with 8 x 8 results each, in place of 256 with 4 x 4. Fewer tiles leave a device
/// with too few threads.
///
/// Weights of 4096 x 4096 where `workgroups` is 128, microseconds with 4 x 4 and 8 x 8: 64 tiles of
/// Q4_K 226 and 327; 512 tiles of Q4_K 718 and 557, of Q6_K 757 and 568, of F16 908 and 563, of F32
/// 915 and 511; 2,048 tiles of Q4_K 2,730 and 2,194.
///
/// Unit: tiles. Card: NVIDIA H200.
pub(crate) const MATMUL_MANY_TILES: u32 = 4;

/// Steps above which 96 threads in place of 32 share a row of a weight in products of one row in 8
/// bits. A step is 32 columns, or 64 in formats with blocks of 256.
///
/// A model with 1024 rows of 2048 and of 3072 columns in Q8_0 in every layer takes 1.8% less time
/// per token with 64 threads than with 32, and another 1.7% less with 96.
///
/// Unit: steps. Card: NVIDIA H200.
pub(crate) const VEC_Q8_MIDDLE_STEPS: u32 = 32;

/// Rows of a weight for each of the table's `workgroups`, below which rows of more than
/// [`VEC_Q8_MIDDLE_STEPS`] have 96 threads: fewer rows are too few workgroups.
///
/// Unit: rows of a weight. Card: NVIDIA H200.
pub(crate) const VEC_Q8_MANY_ROWS: u32 = 128;

/// Columns up to which 32 threads, and up to which 64 threads, read a row of a weight in products
/// of up to eight rows in 8 bits, one block of 32 per thread. Longer rows have 128 threads.
///
/// Fewer threads leave fewer idle, but they lose where they take blocks in turns: 8 rows of 1536 to
/// 8960 take 31.7 us with 128 threads and 23.8 us with 64, and 8 rows of 2560 to 9728 take 32.2 and
/// 43.4 us (gate and up in Q4_K).
///
/// Rows of 32 threads also decide which plans of many rows have no branch for absent rows. Without
/// it, prompts of 512 rows of Qwen3-8B Q4_K_M without cooperative matrices run at 3,909 tokens a
/// second instead of 3,645, and most models that were measured gain 3 to 10%. Short rows of formats
/// with a scale alone lose: 512 rows of gate and up of Qwen3-0.6B take 197 us instead of 165 in
/// Q8_0, and 262 instead of 198 in MXFP4.
///
/// Unit: columns. Card: NVIDIA H200.
pub(crate) const ROWS8_COLUMNS: [u32; 2] = [1024, 2048];

/// Workgroups of a product of 2, 4 and 8 rows in 8 bits, for each of the table's `workgroups`. For
/// 8 rows it is the number that the card holds at once: three workgroups of 128 threads per
/// multiprocessor. The activations are then loaded as few times as possible. For fewer rows it is
/// twice that.
///
/// In Q4_K, 8 rows of 4096 to 4096 take 10.2, 12.3 and 11.1 us with tiles of 12, 8 and 16 rows of
/// weights; 2 rows of 12288 to 4096 take 17.1 and 24.7 us with tiles of 8 and 16.
///
/// Unit: workgroups. Card: NVIDIA H200.
pub(crate) const ROWS8_WORKGROUPS: [u32; 3] = [6, 6, 3];

/// How many times as many workgroups there are if they have 64 or 32 threads, not 128.
///
/// 8 rows of 2048 to 4096 then take 6.1 us instead of 7.1, and of 1024 to 4096 5.6 instead of 6.5.
///
/// Unit: none. Card: NVIDIA H200.
pub(crate) const ROWS8_MORE_WORKGROUPS: u32 = 2;

/// Narrow tiles of 128 x 64 results, for each of the table's `workgroups`, up to which small tiles
/// (`matmul_tile64`) take more than `tile64_rows` rows, as a numerator and a denominator. A small
/// tile divides the columns among its subgroups, so it takes less time, and two rounds of small
/// tiles take less than the narrow ones; three take more.
///
/// Where narrow tiles are 3/2 of the `workgroups` (128), tokens a second with narrow tiles and with
/// small ones: Qwen3-8B reads prompts of 384 at 10,462 and 11,701, Gemma 4 E2B prompts of 1024 at
/// 33,762 and 35,219, Qwen2.5-1.5B at 51,059 and 53,333.
///
/// Unit: tiles. Card: NVIDIA H200.
pub(crate) const TILE64_TILES: [u32; 2] = [3, 2];

/// Largest number of rows that small tiles take where narrow ones are few or sparse.
///
/// Unit: rows. Card: NVIDIA H200.
pub(crate) const TILE64_MOST_ROWS: u32 = 1024;

/// Share of the rows of large tiles, as a numerator and a denominator, up to which a step is
/// sparse: small tiles then take it, up to [`TILE64_MOST_ROWS`].
///
/// Where narrow tiles are more than [`TILE64_TILES`], Qwen3-4B reads prompts of 768 at 23,820
/// tokens a second with narrow tiles and 22,341 with small ones, but of 576, which leave half a
/// tile empty, at 18,489 and 19,287.
///
/// Unit: rows of a step for each row of its tiles. Card: NVIDIA H100.
pub(crate) const TILE64_SPARSE: [u32; 2] = [3, 4];

/// Columns from which on the subgroups of long and narrow workgroups of small tiles have enough
/// work. Of these workgroups a device runs the table's `workgroups` at the same time, and two or
/// three times as many usual ones.
///
/// 64 rows of 4096 columns of Q4_K, usual, long and narrow, in microseconds: 64 usual workgroups
/// 20.8, 14.5 and 11.2; 96 20.9, 14.6 and 20.1; 128 21.1, 14.9 and 20.6; 192 26.2, 27.0 and 29.9;
/// 256 26.4, 27.5 and 39.0.
///
/// Unit: columns. Card: NVIDIA H200.
pub(crate) const TILE64_LONG_COLUMNS: u32 = 1024;

/// Wide and narrow workgroups of tiles of 128 rows (`matmul_tile128`) in a round, for each of the
/// table's `workgroups`. The rounds decide which are used.
///
/// Q4_K, TFLOP/s wide and narrow: 128 rows of 4096 to 24576 167 and 201, 512 rows 228 and 208; 512
/// rows of 12288 to 4096 145 and 180, 2048 rows of 4096 to 4096 229 and 191.
///
/// Unit: workgroups. Card: NVIDIA H200.
pub(crate) const TILE128_AT_ONCE: [u32; 2] = [2, 3];

/// The time of a round of wide and of narrow workgroups of tiles of 128 rows, measured as
/// [`TILE128_AT_ONCE`].
///
/// Unit: eighths of a round of wide workgroups. Card: NVIDIA H200.
pub(crate) const TILE128_TIME: [u32; 2] = [8, 7];

/// The time of a round of two products in one dispatch, as a numerator and a denominator. It reads
/// more weights before it reads the first ones again for the next rows.
///
/// 512 rows of 3584 to 2 x 18944 take 708 us in one dispatch of 5 rounds, and even 640 rows take
/// only 671 us in two dispatches of 3 rounds. Qwen2.5-1.5B F16 reads prompts of 512 at 51,401
/// tokens a second in 3 rounds of a pair and at 48,156 in twice 2 rounds.
///
/// Unit: rounds of one product. Card: NVIDIA H100.
pub(crate) const PAIR_TIME: [u32; 2] = [5, 4];

/// Largest number of rows of two products in one dispatch of tiles of 128 rows.
///
/// Qwen3-8B reads 11,341 tokens a second of a prompt of 1,024 with pairs and 12,932 without: then
/// neither weight stays in the cache until its next rows.
///
/// Unit: rows. Card: NVIDIA H100.
pub(crate) const PAIRED_ROWS: u32 = 512;

/// Workgroups of products of one row, for each of the table's `workgroups`, up to which each of
/// them makes the residual sum and the norm that it reads.
///
/// A sum with its norm takes 4.4 us as a dispatch. Layers of Gemma 4 E2B with 12288 hidden units
/// take 38.1 us with such products and 46.6 us without.
///
/// Unit: workgroups. Card: NVIDIA H200.
pub(crate) const SUM_TURNS: u32 = 16;

// Attention.

/// Threads of f32 tiles, for each of the table's `split_workgroups`, up to which each row of a step
/// reads its keys by itself: such tiles leave most of a device idle.
///
/// Without cooperative matrices where `split_workgroups` is 512, tokens a second in tiles and by
/// rows; in brackets the threads of the tiles:
///
/// | rows, after | Qwen2.5-1.5B | Qwen3-8B |
/// | ---: | ---: | ---: |
/// | 96, 0 | 8,950, 9,657 (2,560) | 3,310, 3,402 (6,144) |
/// | 96, 4096 | 2,384, 5,025 | 1,400, 1,877 |
/// | 192, 0 | 10,079, 10,591 (4,992) | 3,507, 3,566 (12,288) |
/// | 192, 4096 | 3,937, 5,419 | 2,028, 2,174 |
/// | 384, 0 | 10,700, 10,997 (9,856) | 3,615, 3,611 (24,576) |
/// | 384, 4096 | 5,840, 5,902 | 2,503, 2,145 |
///
/// On llvmpipe, where `split_workgroups` is 16, 128 rows of small models are 11 to 20% slower by
/// rows.
///
/// Unit: threads. Card: NVIDIA H200.
pub(crate) const BY_ROWS_THREADS: u32 = 32;

/// Context length from which 16 and more rows of a sequence take tiles with their keys in parts.
///
/// 64 rows after 2,048 tokens take 14.4 ms without such tiles and 10.3 ms with them on Qwen3-8B,
/// 11.0 and 8.5 on Gemma 4 E2B, 7.6 and 4.6 on Qwen3-0.6B.
///
/// Unit: keys. Card: NVIDIA H100.
pub(crate) const DEEP_KEYS: u32 = 512;

// Experts.

/// Slots per expert, on average, up to which grouped slots of sequences are multiplied in 8 bits on
/// a device with cooperative matrices.
///
/// With 8 slots for each of 128 experts with 768 rows of 2048 columns in Q4_K, gate, up, activation
/// and packing take 155 us in 8 bits. One of the two products takes 105 us in tiles. Batches of 64
/// sequences of Qwen3-30B-A3B generate 3,842 tokens a second in 8 bits and 2,659 in f16.
///
/// Unit: slots. Card: NVIDIA H200.
pub(crate) const EXPERTS_Q8_SLOTS: u32 = 8;

/// Slots per expert, on average, up to which a workgroup takes four at a time, not eight.
///
/// With 128 experts of 2048 columns and 768 rows in Q4_K: gate and up take 52 us four at a time and
/// 77 us eight at a time with 1 slot per expert, 112 and 114 us with 4, 174 and 155 us with 8.
///
/// Unit: slots. Card: NVIDIA H200.
pub(crate) const EXPERTS_FOUR_SLOTS: u32 = 4;

/// Slots per tile where products take packed rows. An expert with many slots then has many
/// workgroups.
///
/// Gate and up of Qwen3-30B-A3B with random weights, whose router prefers a few experts, take 204
/// us for 64 rows in tiles of 64 slots, four at a time, and 90 us in tiles of 8.
///
/// Unit: slots. Card: NVIDIA H200.
pub(crate) const EXPERTS_TILE_SLOTS: u32 = 8;

/// Fewest columns for which the gated products of one row's experts have more threads for a row of
/// a weight.
///
/// With the loads that came with them, Qwen3-30B-A3B generates 474 tokens a second instead of 437,
/// and Gemma 4 26B-A4B 380 instead of 358.
///
/// Unit: columns. Card: NVIDIA H200.
pub(crate) const EXPERTS_LONG_COLUMNS: u32 = 2048;
