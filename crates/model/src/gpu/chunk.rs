//! The rows of a prompt that are evaluated together.

use crate::adapter::Adapted;
use crate::arch::{self, Architecture};
use crate::error::Error;
use crate::memory;
use crate::needs::Needs;
use crate::options::SessionOptions;
use crate::recording::{Head, PlanKey, recording};
use kernels::{Executor, Precision};

/// A number of rows that suits every executor.
const USUAL: u32 = 512;
/// Larger numbers, tried in order on devices whose table allows them, such as discrete GPUs.
/// Weights are read once per chunk, and products of many rows use the device better. On an H200,
/// Qwen3-8B read 6,515 tokens a second in chunks of 512, and 9,263 in one chunk of 2048.
const LARGE: [u32; 2] = [2048, 1024];
/// Memory limit for the intermediates of larger chunks: these bytes plus 1/34 of the weights. About
/// 50 MB are used by the driver and by blocks that are not full. The limit keeps everything except
/// the cache within 1.03 times the weights plus 300 MB.
const ROOM_BYTES: u64 = 240 << 20;
const ROOM_OF_WEIGHTS: u64 = 34;

/// The options with a chunk that suits the executor, its memory and the context, if `options` set
/// none. `held` bytes of the needed memory are already in use for this model.
pub(crate) fn settled(
    architecture: &dyn Architecture,
    adapted: &Adapted,
    executor: &Executor,
    options: &SessionOptions,
    held: u64,
) -> Result<SessionOptions, Error> {
    if options.chunk > 0 {
        return Ok(options.clone());
    }
    let usual = SessionOptions { chunk: USUAL, ..options.clone() };
    let Executor::Gpu(device) = executor else { return Ok(usual) };
    let context = options.context_for(architecture.summary())?;
    let available = options.memory_bytes.or_else(|| Some(memory::available(executor)?.saturating_add(held)));
    let roomy = |chunk: &u32| {
        let asked = SessionOptions { chunk: *chunk, ..options.clone() };
        // A chunk that the device cannot bind is an error here, so a smaller one is tried.
        Needs::of(architecture, adapted, executor, &asked).is_ok_and(|needs| fits(&needs, available))
    };
    let chunk = LARGE
        .into_iter()
        .filter(|&chunk| chunk <= context.next_power_of_two().min(device.caps().table.chunk))
        .find(roomy);
    Ok(SessionOptions { chunk: chunk.unwrap_or(USUAL), ..usual })
}

fn fits(needs: &Needs, available: Option<u64>) -> bool {
    let room = ROOM_BYTES + needs.weights.0 / ROOM_OF_WEIGHTS;
    needs.intermediates.0 <= room && available.is_none_or(|bytes| needs.total().0 <= bytes)
}

/// Rows of a large tile of products.
const TILE: u32 = 128;

/// The most rows behind 1, 2, .. 15 whole tiles that are a step of their own.
type Rests = [u32; 15];

/// The [`Rests`] of models by the weights that one row is multiplied with, at least this many. In
/// smaller models, more of a step is not products.
///
/// Products run in rounds of workgroups. So one row more than whole tiles costs as much as 128 rows
/// more, or nearly nothing. It costs more than a step of its own where a round begins. Milliseconds
/// of one row more and of 128 rows more, on an NVIDIA H100, in one step; a step of 1 and of 32 rows
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
/// Rounds of other models begin elsewhere. The first two classes therefore also follow Qwen2.5-7B
/// and Gemma 3 4B. Behind 1,024 rows they follow Qwen3-8B alone: 1,100 rows take 80 ms there in
/// place of 93 and 72 ms on Qwen2.5-7B, whose 1,088 rows take 70 ms in one step.
static RESTS: [(u64, Rests); 4] = [
    (5_000_000_000, [48, 32, 32, 48, 0, 32, 0, 128, 0, 0, 32, 32, 32, 0, 0]),
    (2_500_000_000, [4, 1, 32, 16, 0, 32, 0, 32, 0, 0, 0, 64, 32, 0, 0]),
    (1_600_000_000, [1, 1, 0, 1, 1, 1, 0, 32, 0, 0, 16, 1, 1, 0, 0]),
    (1_000_000_000, [4, 0, 1, 0, 0, 0, 0, 1, 0, 0, 32, 0, 0, 0, 0]),
];

/// The rests of a model whose rows are each multiplied with this many weights.
fn rests(weights: u64) -> Option<&'static Rests> {
    RESTS.iter().find(|(least, _)| weights >= *least).map(|(_, rests)| rests)
}

/// How a prompt is divided into steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// Largest number of rows of a step.
    pub chunk: u32,
    /// The rows behind whole tiles that are a step of their own, if there are any.
    pub rests: Option<&'static Rests>,
}

impl Division {
    /// The division for these options, whose chunk is settled. Only cooperative matrices multiply
    /// whole tiles. A mixture of experts has no rests: few rows of it read nearly as many weights
    /// as many rows do.
    pub fn of(
        architecture: &dyn Architecture,
        adapted: &Adapted,
        executor: &Executor,
        options: &SessionOptions,
    ) -> Self {
        let chunk = options.chunk;
        let tiles = match executor {
            Executor::Gpu(device) => device.caps().cooperative && options.plan.precision == Precision::Fast,
            Executor::Cpu => false,
        };
        if !tiles || chunk <= TILE {
            return Self { chunk, rests: None };
        }
        let kinds = arch::states(architecture.summary(), options);
        let key = PlanKey { rows: TILE, out: 1, head: Head::Sample { penalize: false } };
        let recording = recording(architecture, adapted, &kinds, key);
        let weights = recording.work().flops / u64::from(2 * TILE);
        Self { chunk, rests: if recording.chooses_experts() { None } else { rests(weights) } }
    }

    /// Rows of the next step if `left` rows are left.
    pub fn next(self, left: usize) -> usize {
        let rows = left.min(self.chunk as usize);
        let tiles = rows.saturating_sub(1) / TILE as usize;
        let rest = rows - tiles * TILE as usize;
        let most = self.rests.and_then(|rests| rests.get(tiles.checked_sub(1)?).copied()).unwrap_or(0);
        if rest <= most as usize { rows - rest } else { rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::Size;

    #[test]
    fn a_prompt_is_divided_behind_whole_tiles() {
        let steps = |division: Division, mut left: usize| {
            let mut steps = vec![];
            while left > 0 {
                steps.push(division.next(left));
                left -= steps.last().unwrap();
            }
            steps
        };
        let divided = Division { chunk: 2048, rests: Some(&RESTS[0].1) };
        for (rows, expected) in [
            (1, vec![1]),
            (65, vec![65]),
            (128, vec![128]),
            (129, vec![128, 1]),
            (176, vec![128, 48]),
            (177, vec![177]),
            (256, vec![256]),
            (272, vec![256, 16]),
            (385, vec![384, 1]),
            (417, vec![417]),
            (513, vec![512, 1]),
            (641, vec![641]),
            (1025, vec![1024, 1]),
            (1152, vec![1024, 128]),
            (1153, vec![1153]),
            (2049, vec![2048, 1]),
            (2048, vec![2048]),
            (2048 + 129, vec![2048, 128, 1]),
        ] {
            assert_eq!(steps(divided, rows), expected);
        }
        assert_eq!(steps(Division { chunk: 512, rests: None }, 513 + 129), [512, 130]);
        assert_eq!(steps(Division { chunk: 96, rests: Some(&RESTS[0].1) }, 129), [96, 33]);
        assert_eq!(Division { chunk: 512, rests: Some(&RESTS[3].1) }.next(0), 0);
    }

    #[test]
    fn models_of_less_than_a_billion_weights_have_no_rests() {
        assert_eq!([8_000_000_000, 5_000_000_000].map(rests), [Some(&RESTS[0].1); 2]);
        assert_eq!([3_000_000_000, 1_900_000_000, 1_300_000_000].map(rests), [1, 2, 3].map(|n| Some(&RESTS[n].1)));
        assert_eq!(rests(999_999_999), None);
    }

    fn needs(weights: u64, intermediates: u64) -> Needs {
        Needs { weights: Size(weights), kv: Size(100), intermediates: Size(intermediates) }
    }

    #[test]
    fn intermediates_stay_small_beside_the_weights_and_all_of_it_within_the_memory() {
        assert!(fits(&needs(0, ROOM_BYTES), None));
        assert!(!fits(&needs(0, ROOM_BYTES + 1), None));
        assert!(fits(&needs(5_184_000_000, 347_400_000), None), "Qwen3-8B in chunks of 2048");
        assert!(fits(&needs(1000, 50), Some(1150)) && !fits(&needs(1000, 50), Some(1149)));
    }
}
