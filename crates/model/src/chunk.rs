//! The default number of a prompt's rows that are evaluated together.

use crate::adapter::Adapted;
use crate::arch::Architecture;
use crate::error::Error;
use crate::needs::{self, Needs};
use crate::session::SessionOptions;
use kernels::Executor;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Size;

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
