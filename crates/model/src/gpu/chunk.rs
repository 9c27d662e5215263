//! The rows of a prompt that are evaluated together.

use crate::adapter::Adapted;
use crate::arch::{self, Architecture};
use crate::error::Error;
use crate::memory;
use crate::needs::Needs;
use crate::options::SessionOptions;
use crate::recording::{Head, PlanKey, recording};
use kernels::{Executor, Precision, Table};

/// A number of rows that suits every executor.
const USUAL: u32 = 512;
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
    let chunk = Table::LARGE_CHUNKS
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

/// The rests of a model whose rows are each multiplied with this many weights.
fn rests(weights: u64) -> Option<&'static Rests> {
    Table::RESTS.iter().find(|(least, _)| weights >= *least).map(|(_, rests)| rests)
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
        let divided = Division { chunk: 2048, rests: Some(&Table::RESTS[0].1) };
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
        assert_eq!(steps(Division { chunk: 96, rests: Some(&Table::RESTS[0].1) }, 129), [96, 33]);
        assert_eq!(Division { chunk: 512, rests: Some(&Table::RESTS[3].1) }.next(0), 0);
    }

    #[test]
    fn models_of_less_than_a_billion_weights_have_no_rests() {
        assert_eq!([8_000_000_000, 5_000_000_000].map(rests), [Some(&Table::RESTS[0].1); 2]);
        assert_eq!(
            [3_000_000_000, 1_900_000_000, 1_300_000_000].map(rests),
            [1, 2, 3].map(|n| Some(&Table::RESTS[n].1))
        );
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
