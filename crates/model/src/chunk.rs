//! The rows of a prompt that are evaluated together.

use crate::adapter::Adapted;
use crate::arch::{self, Architecture};
use crate::error::Error;
use crate::needs::{self, Needs};
use crate::runner::{Head, PlanKey, recording};
use crate::session::SessionOptions;
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
    let available = options.memory_bytes.or_else(|| Some(needs::available(executor)?.saturating_add(held)));
    let roomy = |chunk: &u32| {
        let asked = SessionOptions { chunk: *chunk, ..options.clone() };
        // A chunk that the device cannot bind is an error here, so a smaller one is tried.
        Needs::of(architecture, adapted, executor, &asked).is_ok_and(|needs| fits(&needs, available))
    };
    let chunk = LARGE.into_iter().filter(|&chunk| chunk <= context.next_power_of_two().min(device.caps().table.chunk)).find(roomy);
    Ok(SessionOptions { chunk: chunk.unwrap_or(USUAL), ..usual })
}

fn fits(needs: &Needs, available: Option<u64>) -> bool {
    let room = ROOM_BYTES + needs.weights.0 / ROOM_OF_WEIGHTS;
    needs.intermediates.0 <= room && available.is_none_or(|bytes| needs.total().0 <= bytes)
}

/// Rows of a large tile of products.
const TILE: u32 = 128;

/// Few rows at the end of a prompt are a step of their own if a row is multiplied with at least
/// this many weights. In smaller models products take a smaller part of a step.
const LARGE_WEIGHTS: u64 = 5_000_000_000;

/// (whole tiles or more, the most rows behind them that are a step of their own). Tokens a second
/// in one step and in two, on an NVIDIA H100:
///
/// | rows | Qwen3-8B | Qwen2.5-7B | Qwen3-4B |
/// | ---: | ---: | ---: | ---: |
/// | 129 | 6,037, 7,945 | 6,219, 7,930 | 9,727, 10,475 |
/// | 160 | 7,502, 8,320 | 7,695, 8,102 | 12,233, 10,438 |
/// | 257 | 8,116, 9,625 | 7,955, 8,753 | 12,699, 13,732 |
/// | 288 | 9,061, 9,518 | 8,957, 8,750 | 14,090, 13,438 |
/// | 385 | 9,127, 10,747 | 10,186, 10,401 | 14,143, 16,249 |
/// | 400 | 9,448, 10,493 | 10,547, 10,158 | 14,663, 15,599 |
/// | 1025 | 10,975, 13,862 | 15,323, 15,429 | 20,838, 22,225 |
///
/// 512 and 513 rows in one step take 39.8 and 53.0 ms on Qwen3-8B, 36.8 and 42.7 ms on Qwen2.5-7B.
/// A row of its own takes about 3 ms. On an NVIDIA H200, Qwen3-8B takes 40.7 ms for 512 rows and
/// 44.0 ms for 513 rows in two steps.
const RESTS: [(u32, u32); 6] = [(1, 32), (2, 16), (3, 8), (4, 16), (5, 0), (8, 8)];

/// How a prompt is divided into steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// Largest number of rows of a step.
    pub chunk: u32,
    /// Whether few rows behind whole tiles are a step of their own ([`RESTS`]).
    pub rest: bool,
}

impl Division {
    /// The division for these options, whose chunk is settled. Cooperative matrices multiply whole
    /// tiles, so one row more than 128 can cost as much as 64 rows more. If the model is large, a
    /// step of its own for few rows is faster.
    pub fn of(architecture: &dyn Architecture, adapted: &Adapted, executor: &Executor, options: &SessionOptions) -> Self {
        let chunk = options.chunk;
        let tiles = match executor {
            Executor::Gpu(device) => device.caps().cooperative && options.plan.precision == Precision::Fast,
            Executor::Cpu => false,
        };
        let rest = tiles && chunk > TILE && {
            let kinds = arch::states(architecture.summary(), options);
            let key = PlanKey { rows: TILE, out: 1, head: Head::Sample { penalize: false } };
            let work = recording(architecture, adapted, &kinds, key).work();
            work.flops / u64::from(2 * TILE) >= LARGE_WEIGHTS
        };
        Self { chunk, rest }
    }

    /// Rows of the next step if `left` rows are left.
    pub fn next(self, left: usize) -> usize {
        let rows = left.min(self.chunk as usize);
        let (tiles, past) = (rows / TILE as usize, rows % TILE as usize);
        let most = RESTS.iter().rev().find(|rest| rest.0 as usize <= tiles).map_or(0, |rest| rest.1 as usize);
        if self.rest && past <= most { rows - past } else { rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Size;

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
        let divided = Division { chunk: 2048, rest: true };
        for (rows, expected) in [
            (1, vec![1]),
            (65, vec![65]),
            (128, vec![128]),
            (129, vec![128, 1]),
            (160, vec![128, 32]),
            (161, vec![161]),
            (272, vec![256, 16]),
            (385, vec![384, 1]),
            (393, vec![393]),
            (513, vec![512, 1]),
            (641, vec![641]),
            (1025, vec![1024, 1]),
            (2049, vec![2048, 1]),
            (2048 + 129, vec![2048, 128, 1]),
        ] {
            assert_eq!(steps(divided, rows), expected);
        }
        assert_eq!(steps(Division { chunk: 512, rest: false }, 513 + 129), [512, 130]);
        assert_eq!(steps(Division { chunk: 96, rest: true }, 129), [96, 33]);
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
