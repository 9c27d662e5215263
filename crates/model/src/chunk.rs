//! How many rows of a prompt are evaluated together, where nobody says.

use crate::adapter::Adapted;
use crate::arch::Architecture;
use crate::error::Error;
use crate::needs::{self, Needs};
use crate::session::SessionOptions;
use kernels::Executor;

/// Rows that suit every executor.
const USUAL: u32 = 512;
/// What a device is asked for whose table says so, as those of discrete GPUs do, most first: weights are read once a chunk, and products of many rows keep it busy (on an H200
/// Qwen3-8B read 6,515 tokens a second in chunks of 512 where it read 9,263 in one of 2048).
const LARGE: [u32; 2] = [2048, 1024];
/// Bytes that the intermediates of larger chunks may take, and the part of the weights that they may take beside that: with some 50 MB of the
/// driver's and of blocks that are not full, everything but the cache stays within 1.03 times the weights and 300 MB.
const ROOM_BYTES: u64 = 240 << 20;
const ROOM_OF_WEIGHTS: u64 = 34;

/// The options with a number of rows that suits the executor, its memory and the context, where they name none. Of what is needed,
/// `held` bytes are there already.
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
        // What a device cannot bind, it may in smaller parts.
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
